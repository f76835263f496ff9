"""Copies of tiles to shared memory by the threads of a block."""
