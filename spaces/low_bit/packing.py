"""Matrices of codes as bytes in the order of :mod:`spaces.low_bit.order`, with a trailer that says
what they are.

The bytes of a matrix are its tiles, then :data:`TRAILER` bytes: what the order is called, the
dtype, and the numbers of matrices, rows and depth. The rows are filled up to a multiple of 16 and
the depth to one of 64 with codes of zero.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.low_bit.codes import codes_of, dtype_name, values_of_codes
from tilewright.spaces.low_bit.order import DEPTH, LANES, ROWS, slots, tile_bytes, word_groups

TRAILER = 64
"""Bytes behind the tiles."""
ORDER = b"tiles16x64.1"
"""The name of the order, with its version."""
_FORM = "<16s16s3Q8x"
CHUNK = 1 << 12
"""Tiles that are packed at a time."""


def codes_shape(shape: Sequence[int], name: str) -> tuple[int, int, int]:
    """Return the matrices, rows and depth of a packed array of this shape; :class:`InputError` for
    what has no order."""
    if dtype(name).bits > 8:
        raise InputError(f"no packed order of {name}; allowed: dtypes of up to 8 bits")
    if len(shape) not in (2, 3) or 0 in shape:
        allowed = "(rows, depth), or (matrices, rows, depth)"
        raise InputError(f"no packed order of the shape {shown(tuple(shape))}; allowed: {allowed}")
    return (1, *shape) if len(shape) == 2 else tuple(shape)  # type: ignore[return-value]


def packed_bytes(shape: Sequence[int], name: str) -> int:
    """Return the bytes that a matrix, or several, takes, the trailer included."""
    matrices, rows, depth = codes_shape(shape, name)
    tiles = ceil_div(rows, ROWS) * ceil_div(depth, DEPTH)
    return matrices * tiles * tile_bytes(dtype(name).bits) + TRAILER


def pack_codes(weight: Any, name: str) -> Any:
    """Return a matrix ``weight[rows, depth]``, or several, of elements of the dtype ``name`` as
    packed bytes. See :func:`~spaces.low_bit.codes.codes_of` for what its elements may be."""
    codes = codes_of(weight, name)
    matrices, rows, depth = codes_shape(codes.shape, name)
    down, across = ceil_div(rows, ROWS), ceil_div(depth, DEPTH)
    whole = _zeros(codes, (matrices, down * ROWS, across * DEPTH), codes.dtype)
    whole[:, :rows, :depth] = codes.reshape(matrices, rows, depth)
    # matrices, depth / 64, rows / 16, half, g, step, t, code of the pair
    parts = whole.reshape(matrices, down, 2, 8, across, 8, 4, 2)
    parts = _dense(_transposed(parts, (0, 4, 1, 2, 3, 5, 6, 7))).reshape(-1, 2, 8, 8, 4, 2)
    packed = [_tiles(part, dtype(name).bits) for part in _cut(parts)]
    return _joined([*packed, _as(codes, _trailer(matrices, rows, depth, name))])


def unpack_codes(stored: Any, shape: Sequence[int], name: str) -> Any:
    """Return the codes (uint8) of packed bytes, in this shape. Raises :class:`InputError` for bytes
    that are not those of such a matrix."""
    check_stored(stored, shape, name)
    matrices, rows, depth = codes_shape(shape, name)
    down, across = ceil_div(rows, ROWS), ceil_div(depth, DEPTH)
    bits = dtype(name).bits
    tiles = stored[:-TRAILER].reshape(-1, tile_bytes(bits))
    parts = _joined([_codes(part, bits) for part in _cut(tiles)])
    parts = parts.reshape(matrices, across, down, 2, 8, 8, 4, 2)
    whole = _dense(_transposed(parts, (0, 2, 3, 4, 1, 5, 6, 7)))
    whole = whole.reshape(matrices, down * ROWS, across * DEPTH)
    return _dense(whole[:, :rows, :depth].reshape(tuple(shape)))


def unpack_values(stored: Any, shape: Sequence[int], name: str) -> Any:
    """Return the values of packed bytes, in this shape."""
    return values_of_codes(unpack_codes(stored, shape, name), name)


def check_stored(stored: Any, shape: Sequence[int], name: str) -> None:
    """Raise :class:`InputError` unless ``stored`` has the bytes that :func:`pack_codes` gives for
    this shape and dtype."""
    wanted = packed_bytes(shape, name)
    if dtype_name(stored) != "uint8" or tuple(stored.shape) != (wanted,):
        found = f"{dtype_name(stored)}{list(stored.shape)}"
        said = f"{name}{list(shape)}"
        raise InputError(f"{found} for packed {said}; allowed: uint8[{wanted}]")
    tail = stored[-TRAILER:]
    tail = tail if isinstance(tail, np.ndarray) else tail.detach().cpu().numpy()
    trailer = _trailer(*codes_shape(shape, name), name)
    if tail.tobytes() != trailer:
        raise InputError(
            f"packed bytes of {_described(tail.tobytes())}; allowed: {_described(trailer)}"
        )


def _trailer(matrices: int, rows: int, depth: int, name: str) -> bytes:
    return struct.pack(_FORM, ORDER, name.encode(), matrices, rows, depth)


def _described(trailer: bytes) -> str:
    """Say what a trailer says that bytes are."""
    order, name, *shape = struct.unpack(_FORM, trailer)
    if not order.startswith(b"tiles"):
        return "no known order"
    words = [word.rstrip(b"\0").decode("ascii", "replace") for word in (order, name)]
    return f"{words[1]}{shape} in the order {words[0]}"


def _tiles(parts: Any, bits: int) -> Any:
    """Return codes ``[tiles, half, g, step, t, code]`` as the bytes of all tiles."""
    wide = _as_words(parts)
    words = [0] * bits
    for step, halves in enumerate(slots(bits)):
        for half, slot in enumerate(halves):
            for code in range(2):
                values = wide[:, half, :, step, :, code]
                for piece in slot:
                    found = (values >> piece.bit) & ((1 << piece.bits) - 1)
                    words[piece.word] = words[piece.word] | (found << (piece.place + 16 * code))
    together = _stacked(words)  # [tiles, g, t, word]
    groups = [together[..., first : first + n] for first, n in word_groups(bits)]
    flat = [_dense(group).reshape(len(parts), -1) for group in groups]
    return _as_bytes(_beside(flat))


def _codes(tiles: Any, bits: int) -> Any:
    """Return the codes ``[tiles, half, g, step, t, code]`` of the bytes of some tiles."""
    words, count = _of_bytes(tiles), len(tiles)
    by_word: list[Any] = []
    for first, n in word_groups(bits):
        group = words[:, LANES * first : LANES * (first + n)].reshape(count, 8, 4, n)
        by_word += [group[..., place] for place in range(n)]
    codes = _zeros(tiles, (count, 2, 8, 8, 4, 2), tiles.dtype)
    for step, halves in enumerate(slots(bits)):
        for half, slot in enumerate(halves):
            for code in range(2):
                found: Any = 0
                for piece in slot:
                    own = by_word[piece.word] >> (piece.place + 16 * code)
                    found = found | ((own & ((1 << piece.bits) - 1)) << piece.bit)
                codes[:, half, :, step, :, code] = found
    return codes


# -- what NumPy and torch spell differently ------------------------------------------------------


def _cut(parts: Any) -> list[Any]:
    return [parts[first : first + CHUNK] for first in range(0, len(parts), CHUNK)]


def _zeros(like: Any, shape: tuple[int, ...], kind: Any) -> Any:
    if isinstance(like, np.ndarray):
        return np.zeros(shape, kind)
    return like.new_zeros(shape, dtype=kind)


def _transposed(array: Any, order: Sequence[int]) -> Any:
    return array.transpose(order) if isinstance(array, np.ndarray) else array.permute(*order)


def _dense(array: Any) -> Any:
    return np.ascontiguousarray(array) if isinstance(array, np.ndarray) else array.contiguous()


def _as_words(array: Any) -> Any:
    return array.astype(np.int32) if isinstance(array, np.ndarray) else array.int()


def _as_bytes(words: Any) -> Any:
    if isinstance(words, np.ndarray):
        return np.ascontiguousarray(words).view(np.uint8).reshape(-1)
    import torch

    return words.contiguous().view(torch.uint8).reshape(-1)


def _of_bytes(tiles: Any) -> Any:
    if isinstance(tiles, np.ndarray):
        return np.ascontiguousarray(tiles).view(np.int32)
    import torch

    return tiles.contiguous().view(torch.int32)


def _as(like: Any, data: bytes) -> Any:
    array = np.frombuffer(data, np.uint8)
    if isinstance(like, np.ndarray):
        return array
    import torch

    return torch.from_numpy(array.copy()).to(like.device)


def _stacked(words: Sequence[Any]) -> Any:
    if isinstance(words[0], np.ndarray):
        return np.stack(words, -1)
    import torch

    return torch.stack(list(words), -1)


def _beside(parts: Sequence[Any]) -> Any:
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts, 1)
    import torch

    return torch.cat(list(parts), 1)


def _joined(parts: Sequence[Any]) -> Any:
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    import torch

    return torch.cat(list(parts))
