"""Whole models, operator by operator, against libraries and compilers."""
