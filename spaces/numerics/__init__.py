"""References in float64, and how far right kernels may be from them."""
