"""Branches of a graph that are computed side by side (IOS, Ding et al., MLSys 2021).

:mod:`units` cuts a graph into units and blocks, and :mod:`planning` divides a block into stages by
what they cost, which :mod:`costs` knows. :mod:`steps` compiles, :mod:`running` calls, and
:mod:`staging` does all of that for a graph of the backend.
"""
