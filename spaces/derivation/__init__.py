"""What follows from a program of :mod:`spaces.language`: nothing of this is declared anywhere.

Roles of axes and places of operands in sums of products, and corrections between dependent
reductions.
"""
