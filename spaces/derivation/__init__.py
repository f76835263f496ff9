"""Facts derived from a program of :mod:`spaces.language`; none of them is declared anywhere.

They are the roles of axes and the places of operands in sums of products, and corrections between
dependent reductions.
"""
