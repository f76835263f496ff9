"""Inputs that tell right kernels from wrong ones, and what right ones make of them."""
