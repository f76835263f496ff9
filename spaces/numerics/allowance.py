"""Compute the allowed output of a workload: an interval for each element.

The error allowed in sums of products is carried through the epilogue and the output's rounding
(:mod:`spaces.numerics.interval`), so the interval is wide where the epilogue magnifies errors and
narrow where it shrinks them. Kernels are verified with these intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import Any

import numpy as np

from tilewright.spaces.dtypes import DType, dtype
from tilewright.spaces.epilogue.expression import SUM
from tilewright.spaces.numerics.adding import error_of_sum
from tilewright.spaces.numerics.interval import Interval, Rules, nowhere
from tilewright.spaces.numerics.numbers import Arrays, Numbers
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.matmul import Matmul, Operand

CHUNK = 3 << 12
"""Elements that are evaluated at a time, so that what lies between operations stays in a cache, and
the allocator gives none of it back to the system: arrays of 128 KiB and more it may, each time."""


def error_of_sums(matmul: Matmul, scale: float = 1.0) -> tuple[float, float]:
    """Return ``(relative, absolute)`` error allowed of a sum of products, the two added, where the
    inputs are drawn in [-1, 1), or [-8, 8) for integers, and the first is multiplied by ``scale``.

    By :func:`~spaces.numerics.adding.error_of_sum`. Of products of uniform variables in [-1, 1),
    the sum of the first k has a standard deviation of sqrt(k) / 3, so sums of K grow to no more
    than 2 sqrt(K), and short ones to 2; those of float8, which lose half a unit for each term, to a
    quarter of that. Integer sums are exact, and rounded only for an epilogue or an output of
    floating point; their products are up to 64.
    """
    accumulator = dtype(matmul.accumulator)
    if accumulator.is_integer and matmul.output.element.is_integer and not matmul.epilogue:
        return (0.0, 0.0)
    kind = "float32" if accumulator.is_integer else matmul.accumulator
    factors = [operand.dtype for operand in matmul.factors]
    size = 2.0 * scale * (64.0 if accumulator.is_integer else 1.0)
    if all(name.startswith("float8") for name in factors):
        size /= 4.0
    terms = prod(axis.extent for axis in matmul.axes if axis.reduction)
    return error_of_sum(terms, kind, factors, size * terms**0.5, size)


def ends(
    matmul: Matmul,
    numbers: Numbers,
    sums: Any,
    operands: Mapping[str, Any],
    scale: float = 1.0,
) -> tuple[Any, Any]:
    """Return the least and the greatest value that elements of the output may have.

    ``sums`` are the exact sums of products, ``operands`` the epilogue's. Both ends are NaN where
    an element must be; they are minus and plus infinity where it may be anything, NaN too.
    """
    relative, absolute = error_of_sums(matmul, scale)
    kind = "float64" if matmul.accumulator == "float64" else "float32"
    rules = Rules(numbers, kind)
    error = numbers.call("abs", [sums]) * relative + absolute
    x = Interval(sums - error, sums + error, nowhere(numbers))
    if matmul.epilogue is None:
        return rules.stored(x, matmul.output.element)
    given = {o.name: rules.given(operands[o.name], o.element) for o in matmul.epilogue_inputs}
    result = matmul.epilogue.fold(rules, {SUM: x, **given})
    return rules.stored(result, matmul.output.element)


def bounds_dtype(output: Array) -> DType:
    """Return the dtype that holds :func:`ends` exactly: float32, or float64 where the output needs
    it."""
    return dtype("float64" if output.dtype in ("float64", "int32", "int64") else "float32")


def allowed(
    matmul: Matmul,
    sums: np.ndarray,
    inputs: Mapping[str, np.ndarray],
    scale: float = 1.0,
    signs: np.ndarray | None = None,
    out: tuple[np.ndarray, np.ndarray] | None = None,
    pause: Callable[[], None] = lambda: None,
) -> tuple[np.ndarray, np.ndarray]:
    """:func:`ends` as arrays of the output's shape, of :func:`bounds_dtype`.

    ``sums`` are those of ``Workload.contract``, each times its sign in ``signs`` if there are any;
    ``out`` may hold arrays to be filled. ``pause`` is called now and then, and may raise to end the
    work.
    """
    shape, numbers = matmul.output.shape, Arrays()
    low, high = out or (np.empty(shape, bounds_dtype(matmul.output).numpy) for _ in range(2))
    operands = matmul.beside_output(inputs)
    with np.errstate(all="ignore"):
        for part in _parts(matmul.output):
            pause()
            values = sums[part].astype(np.float64)
            if signs is not None:
                values *= signs[part]
            beside = {
                name: array[_within(array, part)].astype(np.float64)
                for name, array in operands.items()
            }
            low[part], high[part] = ends(matmul, numbers, values, beside, scale)
    return low, high


def agrees(found: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Tell which elements are within the bounds of :func:`allowed`."""
    value = np.asarray(found).astype(np.float64)
    inside = (low <= value) & (value <= high)
    return inside | (np.isnan(value) & np.isnan(low)) | ((low == -np.inf) & (high == np.inf))


def _parts(output: Operand) -> Iterator[tuple[slice, ...]]:
    """Cuts the output along the dimension that is slowest in memory."""
    if not output.shape:
        yield ()
        return
    slowest = output.order[0]
    length = output.shape[slowest]
    step = max(1, CHUNK * length // max(output.size, 1))
    for start in range(0, length, step):
        part = [slice(None)] * len(output.shape)
        part[slowest] = slice(start, start + step)
        yield tuple(part)


def _within(array: np.ndarray, part: tuple[slice, ...]) -> tuple[slice, ...]:
    """Return ``part`` of an array that broadcasts along dimensions of extent 1."""
    extents = zip(array.shape, part, strict=True)
    return tuple(slice(None) if extent == 1 else piece for extent, piece in extents)
