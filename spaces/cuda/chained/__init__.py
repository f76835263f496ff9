"""The template of attention-like chains by mma.sync: two products, reductions between them."""
