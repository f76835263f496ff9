"""Shared parts of the programs of several operators."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.language.reading.inference import result_dtype

LIMIT = 2**24  # what parameters are below that are no extents


def finished(epilogue: str, accumulator: str) -> str:
    """The epilogue with the accumulator for ``x``; without one, the accumulator."""
    return re.sub(r"\bx\b(?! *\[)", lambda _: accumulator, epilogue or "x")


def chosen(name: str, value: str, allowed: Sequence[str]) -> str:
    """``value``, one of the values ``allowed`` for a parameter."""
    if value not in allowed:
        between = " or " if any("," in each for each in allowed) else ", "
        raise InputError(f"{name}={shown(value)} is unknown; allowed: {between.join(allowed)}")
    return value


def matrix(name: str, dtype: str, order: str, batches: int = 0) -> str:
    """The declaration of an array whose last two dimensions are in ``row`` or ``col`` order."""
    if chosen(name.lower(), order, ("row", "col")) == "row":
        return f"{name}: {dtype}"
    dimensions = (*range(batches), batches + 1, batches)
    return f"{name}: {dtype}(order={dimensions})"


def output_dtype(dtype: str, asked: str) -> str:
    """The dtype of an output, and of what is fused into it."""
    return asked or result_dtype(dtype)


def whole_share(name: str, value: int, of: str, total: int) -> int:
    """``total / value``, if a parameter divides another."""
    if value < 1 or total < 1 or total % value:
        raise InputError(f"{name}={value} does not divide {of}={total}; allowed: its divisors")
    return total // value


def positive(**values: float) -> None:
    """Refuse parameters that are not above zero."""
    for name, value in values.items():
        if not 0 < value < LIMIT:
            allowed = f"above 0, below {LIMIT}"
            raise InputError(f"{name}={shown(value)} is out of range; allowed: {allowed}")


def not_negative(**values: int) -> None:
    """Refuse parameters that are below zero."""
    for name, value in values.items():
        if not 0 <= value < LIMIT:
            allowed = f"from 0 on, below {LIMIT}"
            raise InputError(f"{name}={shown(value)} is out of range; allowed: {allowed}")


def window(size: int, kernel: int, stride: int = 1, padding: int = 0, dilation: int = 1) -> int:
    """Count the windows of ``kernel`` elements that fit into ``size`` with ``padding`` at both
    ends.
    """
    positive(stride=stride, dilation=dilation)
    not_negative(padding=padding)
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    if room < 0:
        reach = dilation * (kernel - 1) + 1
        raise InputError(f"a window of {reach} does not fit into {size} with padding={padding}")
    return room // stride + 1


def place(window: str, tap: str, stride: int, padding: int, dilation: int) -> str:
    """The index that a tap of a window reads."""
    index = f"{stride} * {window} + {dilation} * {tap}"
    return f"{index} - {padding}" if padding else index


def padded(read: str, padding: int, value: str) -> str:
    """The read, with a value outside if windows may leave the array."""
    return f"inside({read}, {value})" if padding else read


def channel(outputs: int, inputs: int, groups: int) -> tuple[str, int]:
    """The index of the input channel that output ``o`` and channel ``c`` of its group read, and the
    number of channels in a group."""
    share, own = (
        whole_share("groups", groups, "o", outputs),
        whole_share("groups", groups, "c", inputs),
    )
    if groups == 1:
        return "c", own
    group = f"o // {share}" if share > 1 else "o"
    return (f"{group} * {own} + c" if own > 1 else group), own


def past(queries: int, keys: int) -> int:
    """Count the positions before the first query; queries are the last positions."""
    positive(j=keys)
    if not 1 <= queries <= keys:
        raise InputError(f"i={queries} is out of range; allowed: 1 to {keys}, the positions")
    return keys - queries


def attended(queries: int, past: int, mask: str, window: int) -> str:
    """The statements that say which keys ``j`` a query ``i`` sees."""
    not_negative(window=window)
    own = f"i + {past}" if past else "i"
    causal = f"where j <= {own}\n" if mask == "causal" and queries > 1 else ""
    return causal + (f"where {own} - j < {window}\n" if window else "")


def spread(
    size: int, kernel: int, stride: int, padding: int, dilation: int, output_padding: int
) -> int:
    """Count the elements that ``size`` windows of ``kernel`` elements cover, without ``padding`` at
    both ends, and with ``output_padding`` at the last.
    """
    positive(stride=stride, dilation=dilation)
    not_negative(padding=padding, output_padding=output_padding)
    found = (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1
    if found < 1:
        raise InputError(f"padding={padding} leaves nothing of {size} windows of {kernel} elements")
    return found


def reached(place: str, tap: str, padding: int, dilation: int) -> str:
    """The place, in steps of the stride, that a tap of a transposed window comes from."""
    index = f"{place} - {dilation} * {tap}"
    return f"({index} + {padding})" if padding else f"({index})"


def landing(read: str, places: Sequence[str], stride: int) -> str:
    """The read where all places are whole steps of the stride and within the array; else zero."""
    taken = f"inside({read}, 0)"
    if stride == 1:
        return taken
    return f"select({' and '.join(f'{place} % {stride} == 0' for place in places)}, {taken}, 0)"
