"""The template of products whose factors are packed first: copied so that their depth is
contiguous."""
