"""Search strategies, and the parts that they share."""
