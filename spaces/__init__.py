"""Says what can be scheduled, and how: workloads, targets, mappings, templates, generated code."""
