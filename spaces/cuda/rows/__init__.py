"""Reductions along rows and maps, read from memory once where they fit beside the threads."""
