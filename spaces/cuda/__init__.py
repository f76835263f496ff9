"""The CUDA target: GPUs as data, and the templates that generate CUDA C++."""
