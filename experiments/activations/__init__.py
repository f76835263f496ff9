"""Activations that a layer keeps for its backward pass, and the time of both."""
