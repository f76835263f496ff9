"""A tuning run: its tasks, its time, its tally and its log."""
