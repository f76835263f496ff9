"""Tensors of random shapes that lie in memory in random ways."""

from collections.abc import Sequence

import torch
from hypothesis import strategies as st
from torch import Tensor

EXTENTS = st.sampled_from((1, 2, 3, 4, 6))


@st.composite
def laid_out(draw: st.DrawFn, shape: Sequence[int], positive: bool = False) -> Tensor:
    """Numbers in [-2, 2), or in [0.5, 2.5), dense in a random order, in a gap, or repeated."""
    seed = draw(st.integers(0, 2**16))
    order = draw(st.permutations(range(len(shape))))
    made = torch.rand([shape[place] for place in order], generator=_generator(seed))
    made = made * 2 + 0.5 if positive else made * 4 - 2
    match draw(st.sampled_from(("dense", "dense", "gap", "repeated"))):
        case "gap" if shape:
            made = torch.cat((made, made), -1)[..., : made.shape[-1]]
        case "repeated" if shape:
            made = made[:1].expand(made.shape)
    places = sorted(range(len(shape)), key=order.__getitem__)
    return made.permute(places) if shape else made


@st.composite
def tensors(draw: st.DrawFn, least: int = 1, most: int = 4, positive: bool = False) -> Tensor:
    """A tensor of ``least`` to ``most`` dimensions."""
    shape = draw(st.lists(EXTENTS, min_size=least, max_size=most))
    return draw(laid_out(shape, positive))


@st.composite
def broadcast(draw: st.DrawFn, count: int = 2, positive: bool = False) -> list[Tensor]:
    """Tensors whose shapes broadcast to one."""
    whole = draw(st.lists(EXTENTS, min_size=1, max_size=4))
    found = []
    for _ in range(count):
        own = whole[draw(st.integers(0, len(whole) - 1)) :]
        shape = [draw(st.sampled_from((1, extent))) for extent in own]
        found.append(draw(laid_out(shape, positive)))
    return found


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
