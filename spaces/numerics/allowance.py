"""What right kernels may give: an interval for each element of a workload's output.

The error allowed of the sums of products is carried through the epilogue and the output's rounding
(:mod:`spaces.numerics.interval`), so it is large where the epilogue magnifies errors and small
where it shrinks them. Whoever verifies kernels does it by these intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import Any

import numpy as np

from spaces.dtypes import DType, dtype
from spaces.epilogue.expression import SUM
from spaces.numerics.interval import Arrays, Interval, Numbers, Rules, nowhere
from spaces.workloads.array import Array
from spaces.workloads.contraction import Contraction, Operand

CHUNK = 1 << 15
"""Elements that are evaluated at a time, so that what lies between operations stays in a cache."""


def error_of_sums(workload: Contraction, scale: float = 1.0) -> tuple[float, float]:
    """``(relative, absolute)`` error allowed of a sum of products, the two added, where the inputs
    are drawn in [-1, 1), or [-8, 8) for integers, and the first is multiplied by ``scale``.

    Of K products of uniform variables in [-1, 1), the sum of the first k has a standard
    deviation of sqrt(k) / 3, and adding the next rounds it by at most half a unit, relative.
    As random errors (Higham and Mary, A new approach to probabilistic rounding error
    analysis, SISC 41, 2019) these add up to a standard deviation of 0.07 K units, and more
    where sums are truncated, as in tensor cores (Fasi, Higham, Mikaitis and Pranesh, Numerical
    behavior of NVIDIA tensor cores, PeerJ CS 7, 2021). 2 K units are far beyond what any of
    millions of elements shows, and far below one product gone wrong; 16 units cover short sums.
    Tensor cores truncate, always towards zero, once for 16 products or more often: where a sum has
    grown, up to a unit of it each time (28,672 products on an H200 went up to 2.1 K units astray).
    Sums of float8 products are kept with 14 bits, truncated, on some tensor cores (DeepSeek-AI,
    DeepSeek-V3 Technical Report, 2024, section 3.3.2): half a unit of 2**-13 for each term. From
    16,384 terms on that is as much as one product, so one that is left out is not seen there.
    Integer sums are exact, and rounded only for an epilogue or an output of floating point; their
    products are up to 64.
    """
    accumulator = dtype(workload.accumulator)
    if accumulator.is_integer and workload.output.element.is_integer and not workload.epilogue:
        return (0.0, 0.0)
    unit = dtype("float32" if accumulator.is_integer else workload.accumulator).epsilon
    largest = 64.0 if accumulator.is_integer else 1.0
    terms = prod(axis.extent for axis in workload.axes if axis.reduction)
    if all(o.dtype.startswith("float8") for o in workload.factors):
        unit, largest = 2.0**-13, 0.25
    truncations = terms / 16.0 if _may_truncate(workload) else 0.0
    return ((2.0 + truncations) * unit, scale * largest * unit * (2.0 * terms + 16.0))


def _may_truncate(workload: Contraction) -> bool:
    """Whether tensor cores may sum up these products."""
    return all(o.dtype in ("float16", "bfloat16", "tfloat32") for o in workload.factors)


def ends(
    workload: Contraction,
    numbers: Numbers,
    sums: Any,
    operands: Mapping[str, Any],
    scale: float = 1.0,
) -> tuple[Any, Any]:
    """The least and the greatest value that elements of the output may have.

    ``sums`` are the exact sums of products, ``operands`` the epilogue's. Both ends are NaN where
    an element must be; they are minus and plus infinity where it may be anything, NaN too.
    """
    relative, absolute = error_of_sums(workload, scale)
    kind = "float64" if workload.accumulator == "float64" else "float32"
    rules = Rules(numbers, kind)
    error = numbers.call("abs", [sums]) * relative + absolute
    x = Interval(sums - error, sums + error, nowhere(numbers))
    if workload.epilogue is None:
        return rules.stored(x, workload.output.element)
    given = {o.name: rules.given(operands[o.name], o.element) for o in workload.epilogue_inputs}
    result = workload.epilogue.fold(rules, {SUM: x, **given})
    return rules.stored(result, workload.output.element)


def bounds_dtype(output: Array) -> DType:
    """The dtype that holds :func:`ends` exactly: float32, or float64 where the output needs it."""
    return dtype("float64" if output.dtype in ("float64", "int32") else "float32")


def allowed(
    workload: Contraction,
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
    shape, numbers = workload.output.shape, Arrays()
    low, high = out or (np.empty(shape, bounds_dtype(workload.output).numpy) for _ in range(2))
    operands = workload.beside_output(inputs)
    with np.errstate(all="ignore"):
        for part in _parts(workload.output):
            pause()
            values = sums[part].astype(np.float64)
            if signs is not None:
                values *= signs[part]
            beside = {
                name: array[_within(array, part)].astype(np.float64)
                for name, array in operands.items()
            }
            low[part], high[part] = ends(workload, numbers, values, beside, scale)
    return low, high


def agrees(found: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Which elements are as :func:`allowed` has them."""
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
    """``part`` of an array that broadcasts along dimensions of extent 1."""
    extents = zip(array.shape, part, strict=True)
    return tuple(slice(None) if extent == 1 else piece for extent, piece in extents)
