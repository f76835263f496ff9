"""Chains over the columns of a product on Hopper's warpgroup matrix instructions."""
