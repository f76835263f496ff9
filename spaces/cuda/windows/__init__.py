"""Sums over windows that overlap, read in place from a window of the image in shared memory."""
