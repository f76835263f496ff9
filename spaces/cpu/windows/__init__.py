"""Products whose operands are read at places: convolutions, reached in place or packed."""
