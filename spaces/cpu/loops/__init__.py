"""Plain kernels of loops on a CPU, for what no other template serves."""
