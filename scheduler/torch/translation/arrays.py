"""Arrays of a program as the language declares them: dtype, shape, and how they lie in memory."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import fx

from tilewright.scheduler.torch.translation.gap import Gap
from tilewright.scheduler.torch.translation.nodes import called, fake, long_dimensions, shape

DTYPES = {
    torch.float64: "float64",
    torch.float32: "float32",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.int64: "int64",
    torch.int32: "int32",
    torch.int8: "int8",
    torch.uint8: "uint8",
    torch.bool: "bool",
}


@dataclass(frozen=True)
class Described:
    """An array by its name, with the dimensions of more than one element.

    ``copied`` arrays lie in memory as no declaration says: kernels get a contiguous copy. Entries
    of a table are ``below`` a limit.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    order: tuple[int, ...]
    leading: int | None = None
    copied: bool = False
    below: int | None = None

    @property
    def properties(self) -> str:
        """The declaration's brackets with all that stands in them; may be empty."""
        rising = self.order == tuple(range(len(self.shape)))
        parts = [] if self.below is None else [f"index < {self.below}"]
        parts += [] if rising else [f"order=({', '.join(map(str, self.order))})"]
        parts += [] if self.leading is None else [f"leading={self.leading}"]
        return f"({', '.join(parts)})" if parts else ""

    def __str__(self) -> str:
        extents = f"[{', '.join(map(str, self.shape))}]" if self.shape else ""
        return f"{self.name}: {self.dtype}{extents}{self.properties}"


def described(node: fx.Node, name: str) -> Described:
    """Return the array of a node; :class:`Gap` for a dtype that no kernel reads."""
    tensor, long = fake(node), long_dimensions(node)
    extents = tuple(shape(node)[place] for place in long)
    kind = DTYPES.get(tensor.dtype)
    if kind is None:
        raise Gap(f"an operand of {tensor.dtype}")
    strides = [tensor.stride(place) for place in long]
    order = tuple(sorted(range(len(long)), key=lambda place: -strides[place]))
    gap = _leading(order, extents, strides)
    if gap is None:
        return Described(name, kind, extents, tuple(range(len(long))), copied=True)
    return Described(name, kind, extents, order, gap or None)


def _leading(order: tuple[int, ...], extents: tuple[int, ...], strides: list[int]) -> int | None:
    """Return the distance between rows that lie apart; 0 of a dense array, None of any other
    one."""
    step, leading = 1, 0
    for place, dimension in enumerate(reversed(order)):
        stride = strides[dimension]
        if place == 1 and stride > step:
            leading = step = stride
        if stride != step:
            return None
        step *= extents[dimension]
    return leading


def _is_place(node: fx.Node) -> bool:
    """Tell whether a node is the place of an extreme, which kernels find as a whole number."""
    return called(node) in ("argmax", "argmin", "max", "min")


def written(node: fx.Node, name: str, grid: fx.Node | None = None) -> Described:
    """Return the array that a kernel writes for a node. It has the shape of the view ``grid``, if
    one is given. :class:`Gap` of a tensor with gaps in memory, such as a column of another one,
    and of a dtype that no kernel writes."""
    kind = fake(node).dtype
    if kind not in DTYPES or kind is torch.bool or (kind is torch.int64 and not _is_place(node)):
        raise Gap(f"a result of {fake(node).dtype}")
    found = described(node, name)
    if found.copied or found.leading is not None:
        raise Gap("a result with gaps in memory")
    if grid is None:
        return found
    extents = tuple(shape(grid)[place] for place in long_dimensions(grid))
    return Described(name, found.dtype, extents, tuple(range(len(extents))))
