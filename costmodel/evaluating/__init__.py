"""Evaluate a cost model on data that it has not seen."""
