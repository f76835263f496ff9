"""The template of maps: transposes, gathers and whatever else computes each element by itself."""
