"""Gradients of programs, which are programs again: reverse mode in the language.

Begin reading at :mod:`spaces.derivation.gradients.gradient`.
"""
