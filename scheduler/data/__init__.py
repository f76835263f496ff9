"""Measurements as tables, for those who study them."""
