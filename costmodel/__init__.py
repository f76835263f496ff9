"""Predicts how fast a schedule is, before anyone runs it."""
