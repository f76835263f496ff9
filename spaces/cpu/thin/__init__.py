"""Matrix products of few rows, whose large operand streams past them once."""
