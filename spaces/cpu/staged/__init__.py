"""Programs that several CPU kernels compute, one after the other."""
