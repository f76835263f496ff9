"""The task scheduler against equal shares, on the suites that are shipped."""
