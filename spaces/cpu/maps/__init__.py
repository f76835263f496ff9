"""Maps: transpositions, gathers and all other programs that compute each element by itself."""
