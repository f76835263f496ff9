"""Chains over the columns of a product on a CPU: attention, and what is like it."""
