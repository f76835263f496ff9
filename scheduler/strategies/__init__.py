"""Searches: what they share, and each of them."""
