"""Contractions of few rows, whose large operand streams by once."""
