"""Measure how much a dashboard takes from the run that it shows."""
