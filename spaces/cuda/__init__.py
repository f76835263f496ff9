"""The CUDA target: hardware as data, and the templates that generate CUDA C++."""
