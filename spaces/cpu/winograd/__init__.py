"""Sums over short windows by Winograd's algorithm: products of transformed images and filters.

``view`` finds the windows of a product, ``code`` writes the loops, ``stages`` the functions that
transform images, filters and products, and ``transforms`` the small matrices in them.
"""
