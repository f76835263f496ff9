"""The template of products with few rows or columns, whose large operand is read once (GEMV)."""
