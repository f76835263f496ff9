"""Two products that share a factor, and a map of both, in one kernel on Hopper."""
