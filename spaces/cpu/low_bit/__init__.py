"""Products of activations and packed codes of 1 to 8 bits."""
