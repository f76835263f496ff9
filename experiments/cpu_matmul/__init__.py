"""Our best schedules against NumPy and torch, interleaved in one process."""
