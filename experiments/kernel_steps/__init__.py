"""Six kernels of one product, each with one idea more than the last."""
