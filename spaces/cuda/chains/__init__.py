"""What templates of chains share on GPUs: a chain on fragments of products, and its outputs."""
