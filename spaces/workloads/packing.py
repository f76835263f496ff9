"""The order of packed weights: one for all schedules, targets and numbers of rows.

A matrix ``w[columns, depth]``, such as the weight of a linear layer, is stored in panels of
:data:`PANEL` columns, the last one filled up with zeros. A panel has all of the depth in words of
four bytes: one word of each column, then the next word of each. A word is one element of float32,
or two neighbours along the depth of bfloat16; an odd depth is filled up with zeros::

    float32     packed[columns / 16, depth, 16]          w[i, j] at [i / 16, j, i % 16]
    bfloat16    packed[columns / 16, depth / 2, 16, 2]   w[i, j] at [i / 16, j / 2, i % 16, j % 2]

A step along the depth then reads whole cache lines one after the other, whatever number of rows
they are multiplied by, and a pair of 16-bit elements is what instructions for dot products take.
Elements of up to 8 bits have an order of their own (:mod:`spaces.low_bit.order`).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.dtypes import dtype as element_type
from tilewright.spaces.errors import InputError, shown

PLAIN = "plain"
"""The layout of weights whose codes lie one by one."""
PANEL = 16
"""Columns that lie side by side: a cache line of words."""
TERMS = {"float32": 1, "bfloat16": 2}
"""Elements of a word, neighbours along the depth, by the dtype of packed arrays."""


def pack(weight: Any, dtype: str = "", layout: str = PLAIN) -> Any:
    """Return a copy of ``weight[columns, depth]``, a NumPy array or a torch tensor, in the packed
    order.

    That is the order of a torch ``Linear``'s weight; give the transpose of ``[depth, columns]``.
    With a ``dtype`` of up to 8 bits, such as ``"uint4"``, the elements are codes or values of it
    (:func:`spaces.low_bit.codes.codes_of`) and the copy is bytes. ``layout`` says how a checkpoint
    stores its codes: ``"plain"``, ``"gptq"``, ``"awq"`` or ``"marlin"``.
    Raises :class:`InputError` for other shapes, and dtypes other than float32 and bfloat16.

    Example::

        packed = tilewright.pack(layer.weight)
        kernel = tilewright.best("matmul m=16 n=3072 k=768 b=packed")
        kernel(x, packed)
        codes = tilewright.pack(layer.qweight, "uint4", layout="gptq")
    """
    if dtype:
        from tilewright.spaces.low_bit.layouts import codes_in
        from tilewright.spaces.low_bit.packing import pack_codes

        bits = bits_of(dtype)
        return pack_codes(weight if layout == PLAIN else codes_in(weight, layout, bits), dtype)
    if layout != PLAIN:
        raise InputError(f"the layout {shown(layout)} without a dtype; allowed: such as uint4")
    check_packed(_dtype(weight), tuple(weight.shape))
    columns, depth = weight.shape
    terms = TERMS[_dtype(weight)]
    stored = packed_shape(columns, depth, terms)
    panels, words = stored[:2]
    whole = _zeros(weight, (panels * PANEL, words * terms))
    whole[:columns, :depth] = weight if isinstance(weight, np.ndarray) else weight.detach()
    parts = whole.reshape(panels, PANEL, words, terms).swapaxes(1, 2)
    return _dense(parts).reshape(stored)


def unpack(stored: Any, columns: int, depth: int, dtype: str = "") -> Any:
    """Return the matrix of ``columns`` and ``depth`` that :func:`pack` stored, as a dense copy: the
    values, where it was given a ``dtype``.

    Raises :class:`InputError` for an array that is not such a matrix's.
    """
    if dtype:
        from tilewright.spaces.low_bit.packing import unpack_values

        bits_of(dtype)
        return unpack_values(stored, (columns, depth), dtype)
    kind = _dtype(stored)
    check_packed(kind, (columns, depth))
    terms = TERMS[kind]
    wanted = packed_shape(columns, depth, terms)
    if tuple(stored.shape) != wanted:
        raise InputError(
            f"a packed array of shape {tuple(stored.shape)}; allowed: {wanted}, which is that of "
            f"{columns} columns and a depth of {depth}"
        )
    parts = stored.reshape(wanted[0], wanted[1], PANEL, terms).swapaxes(1, 2)
    return _dense(_dense(parts).reshape(wanted[0] * PANEL, -1)[:columns, :depth])


def packed_shape(columns: int, depth: int, terms: int) -> tuple[int, ...]:
    """Return the shape that a matrix is stored in, with so many ``terms`` a word."""
    shape = (ceil_div(columns, PANEL), ceil_div(depth, terms), PANEL)
    return shape if terms == 1 else (*shape, terms)


def bits_of(dtype: str) -> int:
    """Return the bits of a dtype of up to 8; :class:`InputError` for any other one."""
    bits = element_type(dtype).bits
    if bits > 8 or dtype == "bool":
        raise InputError(f"codes of {shown(dtype)}; allowed: dtypes of 1 to 8 bits, such as uint4")
    return bits


def check_packed(dtype: str, shape: tuple[int, ...]) -> None:
    """Raise :class:`InputError` for what has no packed order."""
    if dtype in TERMS:
        if len(shape) != 2 or 0 in shape:
            wanted = "allowed: (columns, depth)"
            raise InputError(f"no packed order of the shape {shown(shape)}; {wanted}")
        return
    if element_type(dtype).bits > 8 or dtype == "bool":
        orders = f"{', '.join(TERMS)}, and dtypes of up to 8 bits"
        raise InputError(f"no packed order of {dtype}; allowed: {orders}")
    from tilewright.spaces.low_bit.packing import codes_shape

    codes_shape(shape, dtype)


def _dtype(array: Any) -> str:
    """Return the name of an array's or a tensor's dtype."""
    torch = sys.modules.get("torch")
    if not isinstance(array, np.ndarray) and (torch is None or not torch.is_tensor(array)):
        kind = type(array).__name__
        raise InputError(f"cannot pack a {kind}; allowed: a NumPy array or a torch tensor")
    return str(array.dtype).removeprefix("torch.")


def _zeros(like: Any, shape: tuple[int, ...]) -> Any:
    if isinstance(like, np.ndarray):
        return np.zeros(shape, like.dtype)
    return like.detach().new_zeros(shape)


def _dense(array: Any) -> Any:
    if isinstance(array, np.ndarray):
        return np.ascontiguousarray(array)
    return array.contiguous()
