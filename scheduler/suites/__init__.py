"""Several workloads tuned together, with weights."""
