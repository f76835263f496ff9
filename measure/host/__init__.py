"""Services for all kinds of targets on this machine: cached files, and loaded libraries."""
