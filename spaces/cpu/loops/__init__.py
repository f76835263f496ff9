"""Plain kernels of loops on a CPU, for programs that no other template serves."""
