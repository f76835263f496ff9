"""Programs that several kernels compute, one after the other, whatever the target."""
