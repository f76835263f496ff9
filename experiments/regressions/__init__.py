"""Whether kernels are as fast as those of an earlier checkout, timed in turns."""
