"""CPU kernels in C: the target, its compiler, and the templates."""
