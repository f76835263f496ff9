"""Finds the statistic of few noisy samples that ranks kernels best."""
