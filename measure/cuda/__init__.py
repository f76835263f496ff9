"""Measures CUDA kernels: compiles them with NVRTC, runs them on a GPU or on the emulator."""
