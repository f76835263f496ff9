"""What kernels of placed operands copy: padded operands, patches at borders, packed blocks."""
