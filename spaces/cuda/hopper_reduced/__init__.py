"""The template of products on Hopper whose rows are reduced instead of written (cross-entropy)."""
