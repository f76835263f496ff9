"""Kernels of scans on a CPU: reductions that run along rows, with maps before and after.

``code`` shares rows, or parts of them, among workers; ``row`` writes the walk along a row, and
``prelude`` the functions of lanes that it calls.
"""
