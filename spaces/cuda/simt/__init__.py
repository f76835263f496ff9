"""The template of matrix products by ordinary multiply-adds, for any GPU."""
