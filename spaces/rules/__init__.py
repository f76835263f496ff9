"""What the rules of a space allow, and how many schedules each of them rejects."""
