"""CPU kernels of reductions along rows, some of which depend on others, and of outputs that use
them."""
