"""The template of sums over pairs along both sides by mma.sync: gradients of attention."""
