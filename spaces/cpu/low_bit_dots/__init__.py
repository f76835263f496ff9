"""Products of activations of 8 bits and packed whole numbers of 1 to 8 bits, by dot products.

``code`` reorders activations, ``tile`` has the products of one tile of codes.
"""

from tilewright.spaces.cpu.low_bit_dots.template import LowBitDots as LowBitDots
