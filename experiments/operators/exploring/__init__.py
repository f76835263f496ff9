"""What the space of an operator holds on a GPU, and how its best kernels do beside rivals."""
