"""Models in service: packages with kernels in them, and CUDA graphs for several sizes."""
