"""Training with regions by Tilewright's kernels: losses beside eager's, time and activations."""
