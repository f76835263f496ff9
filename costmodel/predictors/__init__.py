"""Further predictors of latency: a Gaussian process, and combinations of several models."""
