"""How good a cost model is on what it has not seen."""
