"""Tensor maps as data: the runner encodes them for the driver, the emulator decodes them itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from tilewright.spaces.dtypes import dtype

SWIZZLES = (0, 32, 64, 128)
"""Allowed bytes of a swizzled row; 0 for none."""


@dataclass(frozen=True)
class TensorMapSpec:
    """TMA's view of one array: loads and stores move ``box`` elements, clipped to the array.

    ``operand`` names one of the buffers that the launch takes (:class:`~spaces.kernel.Buffer`). All
    tuples run from the fastest dimension to the slowest: ``dims`` and ``box`` in elements,
    ``strides`` in bytes for all dimensions but the first, whose elements are neighbours. The box
    lands in shared memory densely, its 16-byte pieces permuted within rows of ``swizzle`` bytes:
    address bits 4 and up are XORed with the 1, 2 or 3 bits from bit 7 up (for 32, 64 and 128
    bytes). Limits are those of ``cuTensorMapEncodeTiled`` (CUDA driver API); values beyond them
    raise :class:`ValueError`.

    With ``steps``, the map is one of ``cuTensorMapEncodeIm2col``: ``box`` counts elements of the
    first dimension, and pixels. Pixels follow each other over all dimensions but the first:
    ``steps`` apart, from ``lower`` to the extent less 1 plus ``upper``, then on along the next
    dimension.

    The dimension ``open`` has the points of the call's open axis, so many for each (see
    :class:`~spaces.kernel.Call`).
    """

    operand: str
    dtype: str
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int = 0
    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    open: int | None = None

    def at(self, extent: int, whole: int) -> TensorMapSpec:
        """Return the map of an array of which the open axis has another extent; this one is that of
        the ``whole`` axis."""
        if self.open is None:
            return self
        dims = list(self.dims)
        dims[self.open] = dims[self.open] * extent // whole
        return replace(self, dims=tuple(dims))

    def __post_init__(self) -> None:
        row = prod(self.box[:1]) * self.element_bytes
        for broken, text in (
            (not 1 <= self.rank <= 5, "1 to 5 dimensions"),
            (len(self.strides) != self.rank - 1, "one stride per dimension after the first"),
            (len(self.box) != (2 if self.steps else self.rank), "one box extent per dimension"),
            (
                self.steps
                and {len(self.lower), len(self.upper), len(self.steps)} != {self.rank - 2},
                "corners and steps of all dimensions but the first and the last",
            ),
            (any(not -128 <= c <= 127 for c in (*self.lower, *self.upper)), "corners of one byte"),
            (any(not 1 <= step <= 8 for step in self.steps), "steps of 1 to 8"),
            (any(not 1 <= extent <= 2**32 for extent in self.dims), "dimensions of 1 to 2**32"),
            (any(not 1 <= extent <= 256 for extent in self.box), "box extents of 1 to 256"),
            (any(s % 16 or s >= 2**40 for s in self.strides), "strides of multiples of 16 bytes"),
            (row % 16 != 0, "a box row of a multiple of 16 bytes"),
            (self.swizzle not in SWIZZLES, f"a swizzle of {SWIZZLES}"),
            (self.swizzle and row > self.swizzle, "a box row no longer than the swizzle"),
        ):
            if broken:
                raise ValueError(f"a tensor map takes {text}: {self}")

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.dims)

    @property
    def element_bytes(self) -> int:
        """Bytes of one element."""
        return dtype(self.dtype).bytes
