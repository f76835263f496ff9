"""Index arithmetic: task mappings, layouts, and the C that they become."""
