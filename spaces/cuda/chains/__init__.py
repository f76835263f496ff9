"""Code shared by templates of chains on GPUs: a chain on fragments of products, and its outputs."""
