"""Plain reductions over any axes."""
