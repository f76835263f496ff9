"""Kernels that carry a state along positions on a CPU: linear attention, state-space models.

``code`` shares rows and lanes among workers, ``position`` writes what is computed at some positions
at once.
"""
