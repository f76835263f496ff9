"""Products whose operands are read at computed places: convolutions, and what is like them."""
