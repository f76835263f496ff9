"""Contractions in cache blocks, packed or not."""
