"""Make kernels Python functions, or source files."""
