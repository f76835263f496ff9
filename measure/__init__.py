"""Turns a schedule into a number: builds, runs, verifies, times it, and stores the result."""
