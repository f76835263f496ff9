"""Operators on images: windows of pixels."""
