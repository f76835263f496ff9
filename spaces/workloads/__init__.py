"""Workloads: programs, the products of matrices among them, and views of both."""
