"""The template of several kernels on a GPU, launched in sequence with arrays of their own
between."""
