"""Show a tuning run as a table, as lines, or as JSON."""
