"""The template of two products that share a factor, and a map of both (SwiGLU), on Hopper."""
