"""How a tuning run is shown: a table, lines, or JSON."""
