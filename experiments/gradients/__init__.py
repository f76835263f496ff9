"""Gradients by derivation beside torch's own backward on a CPU."""
