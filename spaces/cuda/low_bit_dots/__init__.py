"""Products of int8 activations and packed codes, which stream through rings of shared memory."""

from tilewright.spaces.cuda.low_bit_dots.template import CudaLowBitDots as CudaLowBitDots
