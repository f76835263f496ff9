"""One folder per table or figure; each is a command: ``python -m experiments.NAME``."""
