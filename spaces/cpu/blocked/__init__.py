"""Matrix products in cache blocks, whose operands are packed or read in place."""
