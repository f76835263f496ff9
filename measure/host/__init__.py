"""What every kind of target shares on this machine: files that are kept, and libraries in use."""
