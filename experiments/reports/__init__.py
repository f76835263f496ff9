"""Measure how long a report of many trials takes, and how large it is."""
