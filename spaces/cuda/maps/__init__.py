"""Maps: transpositions, gathers and whatever else computes each element by itself."""
