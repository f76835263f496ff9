"""Contractions by ordinary multiply-adds, for any GPU."""
