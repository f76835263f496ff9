"""Bodies of kernels: statements over typed names, and their text in C and CUDA C++."""
