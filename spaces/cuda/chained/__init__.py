"""Chains over the columns of a product by matrix instructions: attention, and what is like it."""
