"""Scans and recurrences beside copies and torch; see README.md."""
