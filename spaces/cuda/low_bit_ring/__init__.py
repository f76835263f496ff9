"""Products with packed codes whose weights stream through rings of shared memory."""

from tilewright.spaces.cuda.low_bit_ring.template import LowBitRaised as LowBitRaised
from tilewright.spaces.cuda.low_bit_ring.template import LowBitRing as LowBitRing
