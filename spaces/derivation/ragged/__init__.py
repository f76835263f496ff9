"""Programs whose reductions are over ranges of entries, row by row."""
