"""Upper bounds on a kernel's speed from its target: estimates that need no measurements."""
