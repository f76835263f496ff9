"""CPU kernels of reductions along rows, dependent ones included, and of what follows of them."""
