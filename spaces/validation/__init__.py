"""Validation of input from outside: text, numbers and files, checked where they enter."""
