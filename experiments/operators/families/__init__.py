"""The operators that are compared, by families, with their shapes and what torch does."""
