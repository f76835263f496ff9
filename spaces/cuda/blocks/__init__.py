"""Code shared by templates of products: tiles, copies, sums, and the end of a tile."""
