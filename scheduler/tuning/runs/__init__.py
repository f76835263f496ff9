"""Runs of the tuner as a database keeps them, and how they end."""
