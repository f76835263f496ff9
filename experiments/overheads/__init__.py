"""Measures the time that the tuner and its database take for themselves."""
