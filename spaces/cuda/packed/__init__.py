"""Products on a GPU whose factors are packed first: copied so that their depth lies together."""
