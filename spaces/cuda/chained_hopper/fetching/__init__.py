"""TMA copies of rows, keys and values to shared memory."""
