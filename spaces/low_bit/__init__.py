"""Elements of 1 to 8 bits: the values of their codes, and the order in which codes are stored."""
