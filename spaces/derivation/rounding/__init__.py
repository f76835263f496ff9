"""What right kernels of a program may give, by value and bound through each stage."""
