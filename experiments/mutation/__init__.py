"""Checks that the tests detect small changes planted into the code: see README.md."""
