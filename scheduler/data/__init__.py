"""Export measurements as tables."""
