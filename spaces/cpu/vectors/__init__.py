"""Vectors in C: types, functions, loads, stores and transpositions, for the kernels of all
templates.

``simd`` has the types and memory access, ``doubles`` the same for float64, ``words`` for elements
whose bits are only moved, and ``wide`` whole numbers of 64 bits. ``vector_math`` and ``angles``
define the functions of programs, ``lanes``, ``reducers`` and ``long_sums`` serve reductions,
``moves`` reads tables and scattered elements, ``exchanges`` and ``transposing`` transpose blocks.
``vector_code`` writes expressions.
"""
