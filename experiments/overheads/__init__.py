"""What the tuner and its database take for themselves."""
