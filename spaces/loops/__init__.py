"""Plain kernels of loops, which compute any program: what CPUs and GPUs have in common.

They serve what no faster kernel serves: slow, and right. Everything between operands and outputs is
float64 or a whole number of 64 bits, as the meaning of a program has it
(:mod:`spaces.language.evaluation`).
"""
