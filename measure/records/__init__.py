"""Records of attempts: measurement, record, run, and which of them may be believed."""
