"""The identity of a program: a normal form of its expressions, labels in the place of its names,
and the canonical text that its key is made of."""
