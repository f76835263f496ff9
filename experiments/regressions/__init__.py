"""Times kernels in turns with those of an earlier checkout."""
