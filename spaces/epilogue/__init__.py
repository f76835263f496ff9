"""Epilogues: the language of what is done to a sum before it is stored."""
