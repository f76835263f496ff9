"""Sums over short windows by Winograd's algorithm: products of transformed images and filters."""
