"""The rules of a space: the schedules they allow, and how many each of them rejects."""
