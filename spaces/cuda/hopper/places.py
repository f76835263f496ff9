"""Factors of an implicit product as TMA loads them: matrices, and windows of images (im2col).

TMA's im2col mode walks over the pixels of an image as rows of the product do, with a step along
each dimension, from border to border. It reads each pixel at an offset, the point of the window,
and gives zeros beyond the image. So one load brings a tile: the rows at one point of the window,
and a slice of channels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import gcd

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.layout import Strided
from tilewright.spaces.cuda.blocks.gathered import digits
from tilewright.spaces.cuda.blocks.implicit import ImplicitProduct
from tilewright.spaces.cuda.hopper.images import ImageTile, images_of_factor
from tilewright.spaces.cuda.hopper.segments import TrimmedTile, segment_tile, why_no_segment
from tilewright.spaces.cuda.hopper.tile import MatrixTile, OperandTile
from tilewright.spaces.cuda.tensor_map import TensorMapSpec
from tilewright.spaces.derivation.products.splitting import Part
from tilewright.spaces.derivation.products.view import Factor, extent
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.program import Operand

SPATIAL = 2
"""The most dimensions of an image along which windows may move."""
MOST_OFFSET = 255
MOST_STEP = 8


@dataclass(frozen=True)
class Along:
    """One dimension of an image: ``extent`` pixels, ``stride`` elements apart.

    It is read at the index ``step * row + reach * tap + first``, where ``row`` is an axis of the
    product's rows and ``tap`` an axis of the window; one that has a single point is None.
    """

    extent: int
    stride: int
    row: Part | None = None
    step: int = 1
    tap: Part | None = None
    reach: int = 1
    first: int = 0

    @property
    def beyond(self) -> int:
        """Pixels from the image's last to the one of the last row, before its tap is added."""
        rows = self.row.extent if self.row else 1
        return self.first + self.step * (rows - 1) - (self.extent - 1)


@dataclass(frozen=True)
class Windows:
    """A factor read by windows: the depth's fastest axis is also the fastest in memory.

    That axis has ``channels`` elements. ``spatial`` are the dimensions along which windows move,
    from the fastest on, and ``images`` is the slowest one.
    """

    channels: int
    spatial: tuple[Along, ...]
    images: Along


def windows_of(product: ImplicitProduct, factor: Factor, rows: tuple[Part, ...]) -> Windows | str:
    """Return how TMA walks over a factor along ``rows``; or why it cannot, in words."""
    try:
        return _windows(product, factor, rows)
    except InputError as reason:
        return str(reason)


def _windows(product: ImplicitProduct, factor: Factor, rows: tuple[Part, ...]) -> Windows:
    name, size = factor.operand.name, factor.operand.element.bytes
    dimensions = tuple(reversed(factor.operand.order))
    depth = [part for part in product.view.depth if part.extent > 1]
    fastest = _along(product, factor, dimensions[0], rows)
    if not depth or fastest != replace(fastest, row=None, tap=depth[-1], reach=1, first=0):
        raise InputError(f"neighbours of {name} in memory are no neighbours in the depth")
    found = [_along(product, factor, d, rows) for d in dimensions[1:]]
    if wrong := next((a.stride * size for a in found if a.stride * size % 16), None):
        raise InputError(f"pixels of {name} are {wrong} bytes apart; TMA needs a multiple of 16")
    walked = [a.row.name for a in reversed(found) if a.row]
    if walked != [part.name for part in rows if part.extent > 1]:
        raise InputError(f"rows do not walk over {name} in the order of its memory")
    images = Along(1, found[-1].stride * found[-1].extent) if found else Along(1, 0)
    if found and not (found[-1].tap or found[-1].first or found[-1].step != 1):
        images = found.pop()
    if len(found) > SPATIAL:
        raise InputError(f"windows move along {len(found)} dimensions of {name}; allowed: 2")
    for along in found:
        _check(name, along)
    pixel = images.stride
    found += [Along(1, pixel)] * (SPATIAL - len(found))
    return Windows(depth[-1].extent, tuple(found), images)


def _along(
    product: ImplicitProduct, factor: Factor, dimension: int, rows: tuple[Part, ...]
) -> Along:
    index, operand = factor.indices[dimension], factor.operand
    parts = [part for part in (*rows, *product.view.depth) if part.extent > 1]
    terms = {part: c for part in parts if (c := index.coefficient(part.name))}
    along = [part for part in terms if part in rows]
    taps = [part for part in terms if part not in rows]
    if len(along) > 1 or len(taps) > 1:
        raise InputError(
            f"{operand.name} is read at {index.formula}; TMA takes one step and one offset"
        )
    return Along(
        extent=operand.shape[dimension],
        stride=operand.strides[dimension],
        row=along[0] if along else None,
        step=terms[along[0]] if along else 1,
        tap=taps[0] if taps else None,
        reach=terms[taps[0]] if taps else 1,
        first=index.constant,
    )


def _check(name: str, along: Along) -> None:
    corners = (along.first, along.beyond)
    offset = along.reach * (along.tap.extent - 1) if along.tap else 0
    if not all(-128 <= corner <= 127 for corner in corners) or not 0 <= offset <= MOST_OFFSET:
        raise InputError(f"windows of {name} reach {offset} pixels from {along.first} on, too far")
    if not 1 <= along.step <= MOST_STEP or along.reach < 0:
        raise InputError(f"windows of {name} move by {along.step}; allowed: 1 to {MOST_STEP}")


@dataclass(frozen=True)
class WindowTile(OperandTile):
    """Tiles of a factor that is read by ``windows``; its axes along the tile are ``rows``."""

    rows: tuple[Part, ...]
    depth: tuple[Part, ...]
    windows: Windows
    is_open: bool = False
    """True if calls give the number of images."""

    @property
    def runs_deep(self) -> bool:
        """True: channels, which are terms of a sum, are neighbours in memory."""
        return True

    @property
    def tensor_map(self) -> TensorMapSpec:
        """The im2col map of one load: one step of channels of all rows, or one sharer's share."""
        size, spatial = self.operand.element.bytes, self.windows.spatial
        along = (*spatial, self.windows.images)
        return TensorMapSpec(
            self.operand.name,
            self.operand.dtype,
            (self.windows.channels, *(a.extent for a in along)),
            tuple(a.stride * size for a in along),
            (self.terms, self.extent // self.sharers),
            self.swizzle,
            tuple(a.first for a in spatial),
            tuple(a.beyond for a in spatial),
            tuple(a.step for a in spatial),
            open=1 + len(spatial) if self.is_open else None,
        )

    def load(
        self, to: str, tensor_map: str, barrier: str, start: str, depth: str, priority: str = ""
    ) -> list[str]:
        """Print how one thread loads the tile at (start, depth) to the address ``to``.

        Sharers, numbered ``rank``, load equally many rows each and multicast them to all.
        """
        share = self.extent // self.sharers
        first = f"{start}"
        call, ranks = "tma_load_im2col_4d", ""
        if self.sharers > 1:
            first, to = f"{first} + (int)rank * {share}", f"{to} + rank * {share * self.swizzle}"
            call, ranks = "tma_multicast_im2col_4d", f"{(1 << self.sharers) - 1}, "
        row, term = f"{tensor_map}_row", f"{tensor_map}_term"
        rows = digits(self.rows, index(row))
        taps = digits(self.depth, index(term, extent(self.depth)))
        pixel = [self._pixel(a, rows) for a in (*self.windows.spatial, self.windows.images)]
        offsets = [self._offset(a, taps) for a in self.windows.spatial]
        at = ", ".join(v.text for v in (taps[self._channels], *pixel, *offsets))
        at += f", {priority}" if priority else ""
        return [
            f"const u32 {row} = {first}, {term} = {depth};",
            f"tw::{call}({to}, &{tensor_map}, {barrier}, {ranks}{at});",
        ]

    @property
    def _channels(self) -> str:
        return [part.name for part in self.depth if part.extent > 1][-1]

    def _pixel(self, along: Along, rows: Mapping[str, Index]) -> Index:
        return (rows[along.row.name] * along.step if along.row else Index()) + along.first

    def _offset(self, along: Along, taps: Mapping[str, Index]) -> Index:
        return taps[along.tap.name] * along.reach if along.tap else Index()


def placed_tile(
    product: ImplicitProduct,
    rank: int,
    size: int,
    depth_bytes: int,
    sharers: int,
    part: int = 0,
) -> OperandTile:
    """Return the tiles of the left (``rank`` 0) or right (1) factor; see :class:`OperandTile`.

    Rows of a segment may be trimmed to whole parts of ``part`` rows; 0 leaves tiles whole.
    """
    gathered = product.gathered[rank]
    operand = product.right if rank else product.left
    common = (operand, size, depth_bytes, sharers)
    if rank and product.view.segments:
        return segment_tile(product, common)
    if (matrix := gathered.strided) is not None:
        if part and not rank:
            return TrimmedTile(*common, matrix, gathered.deep, part)
        return MatrixTile(*common, matrix, gathered.deep, is_open=product.is_open and not rank)
    if images := images_of_factor(gathered):
        return ImageTile(*common, images)
    factor = product.view.right if rank else product.view.left
    windows = windows_of(product, factor, gathered.width)
    assert not isinstance(windows, str)
    is_open = product.is_open and not rank
    return WindowTile(*common, gathered.width, gathered.depth, windows, is_open)


def why_no_open_map(product: ImplicitProduct) -> str | None:
    """Return why no map has the slowest axis of the rows as a dimension, in words; None if one
    has."""
    gathered, first = product.gathered[0], product.view.rows[0]
    if gathered.strided is not None:
        return None
    windows = windows_of(product, product.view.left, gathered.width)
    if isinstance(windows, str) or windows.images.row != first:
        return (
            f"rows of {product.left.name} are those of no matrix, nor of images along {first.name}"
        )
    return None


def why_no_placed_map(product: ImplicitProduct) -> str | None:
    """Return why TMA cannot load an implicit product's factors, in words; None if it can."""
    if product.view.left.gather:
        return f"a table chooses rows of {product.left.name}, which TMA brings as they lie"
    if product.batches > 1:
        return f"{product.batches} products; allowed where windows move: 1"
    for gathered, factor in zip(
        product.gathered, (product.view.left, product.view.right), strict=True
    ):
        matrix, operand = gathered.strided, factor.operand
        if matrix is None and (images := images_of_factor(gathered)):
            if reason := images.why_no_tile(operand, factor is product.view.right):
                return reason
        elif matrix is None:
            windows = windows_of(product, factor, gathered.width)
            if isinstance(windows, str):
                return windows
            if windows.channels * operand.element.bytes % 64:
                return f"{windows.channels} channels of {operand.name}; needs whole 64 bytes"
            if product.view.segments:
                return f"{operand.name} has windows, and rows come in segments"
        elif product.view.segments and gathered is product.gathered[1]:
            if reason := why_no_segment(product):
                return reason
        elif reason := _why_no_matrix(operand, matrix, gathered.deep):
            return reason
    return None


def _why_no_matrix(operand: Operand, matrix: Strided, deep: bool) -> str | None:
    size = operand.element.bytes
    if size != 2 and not deep:
        return f"{operand.name} is {operand.dtype} and does not run deep; allowed: 2 bytes"
    pitch = matrix.strides[0] * size
    return f"rows of {operand.name} are {pitch} bytes apart; TMA needs 16s" if pitch % 16 else None


def whole_channels(product: ImplicitProduct) -> int:
    """Return how many terms each step's depth must divide: the channels at a point of a window.

    0 if no factor is read by windows; the greatest common divisor if both are.
    """
    found = [
        windows_of(product, factor, gathered.width)
        for gathered, factor in zip(
            product.gathered, (product.view.left, product.view.right), strict=True
        )
        if gathered.strided is None
    ]
    return gcd(*(w.channels for w in found if isinstance(w, Windows)))
