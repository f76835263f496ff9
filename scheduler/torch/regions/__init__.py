"""Regions of a graph: which nodes one kernel computes, where they are, and how much they do."""
