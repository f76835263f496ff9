"""Plain kernels of loops on a GPU, for what no other template serves."""
