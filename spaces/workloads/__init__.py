"""Workloads: contractions, computations, and the views that both share."""
