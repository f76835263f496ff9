"""Derives how stages that read themselves one step before are computed step by step."""
