"""Whether the tests see small changes planted into the code: see README.md."""
