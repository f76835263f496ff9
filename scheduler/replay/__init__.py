"""Searches spaces again that were measured before: no hardware, the same times for every search."""
