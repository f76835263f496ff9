"""Workloads that are like another one, and what is known of them."""
