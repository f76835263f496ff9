"""Products of activations and packed codes of 1 to 8 bits.

``code`` writes the loops, ``tile`` the products of one tile of codes, ``decoding`` the way from
codes to values.
"""
