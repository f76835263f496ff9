"""Exit codes of commands; 0 is success."""

NO_KERNEL = 1  # no kernel was right, or the machine failed
BAD_INPUT = 2
BY_SIGNAL = 128  # a process ended by a signal has this exit code plus the signal's number
