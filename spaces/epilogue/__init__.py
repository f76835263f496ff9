"""Epilogues: what is done to a sum of products before it is stored."""
