"""Which statistic of few noisy samples ranks kernels best."""
