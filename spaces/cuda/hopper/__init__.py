"""Contractions on Hopper: TMA, warpgroup matrix instructions, clusters."""
