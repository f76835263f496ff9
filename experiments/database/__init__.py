"""Measure how fast the tuning database answers, keeps and imports among millions of
measurements."""
