"""Kernels that go step by step on a GPU: delta rules, recurrent networks, sums over prefixes whose
terms separate.

``sizes`` says which threads keep which elements of the state; ``code`` writes the walk of a block,
``step`` what is computed at one step, and ``sources`` how operands are read.
"""
