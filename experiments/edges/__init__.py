"""Random programs, random schedules and long sums at the edges of what inputs can be."""
