"""What is kept of an attempt: measurement, record, run, and which of them may be believed."""
