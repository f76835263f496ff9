"""The template of convolutions with few channels, read in place from windows in shared memory."""
