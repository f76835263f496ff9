"""Sums over short windows by products of transformed images and filters."""
