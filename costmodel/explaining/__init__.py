"""Explain a model by its features, a workload by its decisions, a schedule by its roofs."""
