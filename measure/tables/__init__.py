"""The tables of the tuning database, and what is asked of them."""
