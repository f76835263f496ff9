"""The template of attention-like chains whose scores have many terms, by ``mma.sync``."""
