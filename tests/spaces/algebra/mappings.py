"""Task mappings at random."""

from hypothesis import strategies as st

from tilewright.spaces.algebra.mapping import repeat, spatial

MOST = {1: 4, 2: 3, 3: 2}  # extents of one atom by rank: products stay small


@st.composite
def atoms(draw, rank):
    shape = draw(st.tuples(*[st.integers(1, MOST[rank])] * rank))
    order = draw(st.permutations(range(rank)))
    return draw(st.sampled_from((spatial, repeat)))(*shape, order=order)


@st.composite
def mappings(draw, rank=None, factors=3):
    rank = rank or draw(st.integers(1, 3))
    parts = draw(st.lists(atoms(rank), min_size=1, max_size=factors))
    product_ = parts[0]
    for part in parts[1:]:
        product_ = product_ * part
    return product_
