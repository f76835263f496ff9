"""Arrays for the operands of a program: drawn at random, or a user's, which are checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tilewright.spaces.errors import InputError
from tilewright.spaces.language.given import given_table
from tilewright.spaces.language.program import Entries, Operand, Program
from tilewright.spaces.language.ranges import pointers_of
from tilewright.spaces.language.tree import Binary, Expression, Number, Read

BYTE = "uint8"
SURE = 4
"""Entries of a table that is not sorted, of which one is the least index and one the greatest: a
length of none, or of all there are."""


@dataclass(frozen=True)
class Spread:
    """The distribution of values that are no indices.

    Values are uniform in [-1, 1), or integers from -8 to 7. Bytes from which one number is always
    subtracted, as in ``exp2(e[i] - 127)``, are that number plus such integers. If ``normal``,
    values have a standard deviation of 1, or of 20 for integers: they then differ even where only
    the largest of very many count. Values of the ``operand``, or of the first such one, are
    multiplied by ``scale``; integers only if it is more than 1.
    """

    normal: bool = False
    scale: float = 1.0
    operand: str = ""


def draw(
    program: Program,
    seed: int,
    spread: Spread = Spread(),
    places: Mapping[str, Mapping[int, np.ndarray]] | None = None,
) -> dict[str, np.ndarray]:
    """Return the same inputs for the same seed, in each operand's dtype, shape and memory order.

    Of operands in ``places``, parts with as many entries along some dimensions as there are
    places: values as they would be there, but not the ones that the whole array has.
    """
    generator = np.random.default_rng(seed)
    first = next((o.name for o in program.operands if o.drawn is None), "")
    scaled = spread.operand or first
    drawn, pointing, middles = {}, pointers_of(program), _middles(program)
    for operand in program.operands:
        if operand.elements is not None:
            drawn[operand.name] = operand.array(np.reshape(operand.elements, operand.shape))
            continue
        scale = spread.scale if operand.name == scaled else 1.0
        wanted = (places or {}).get(operand.name, {})
        part = _part(operand, {dimension: len(at) for dimension, at in wanted.items()})
        if operand.drawn and (operand.drawn.sorted or operand.drawn.table):
            if operand.drawn.table:
                whole = given_table(operand.drawn.table, operand.shape)
            elif operand.name in pointing:
                whole = _pointers(generator, operand, program.extent[pointing[operand.name]])
            else:
                whole = _drawn(generator, operand, spread.normal, scale)
            for dimension, at in wanted.items():
                whole = whole.take(at, dimension)
            drawn[operand.name] = part.array(whole)
        else:
            middle = middles.get(operand.name, 0)
            drawn[operand.name] = part.array(_drawn(generator, part, spread.normal, scale, middle))
    return drawn


def _part(operand: Operand, sizes: Mapping[int, int]) -> Operand:
    """Return an operand with other ``sizes`` of some dimensions."""
    shape = tuple(sizes.get(d, extent) for d, extent in enumerate(operand.shape))
    return operand if shape == operand.shape else replace(operand, shape=shape, leading=None)


def check_inputs(program: Program, inputs: Mapping[str, np.ndarray]) -> None:
    """Raise :class:`InputError` unless there is an array of the right shape for each operand, whose
    entries are indices within their limits, and sorted, where the program says so."""
    unknown = [name for name in inputs if name not in program.operand]
    if unknown:
        known = ", ".join(program.operand)
        raise InputError(f"the program has no operand {unknown[0]!r}; operands: {known}")
    pointing = pointers_of(program)
    for operand in program.operands:
        if operand.name not in inputs:
            raise InputError(f"no array for the operand {operand.name!r}")
        _check(operand, np.asarray(inputs[operand.name]))
        if operand.name in pointing:
            entries = program.extent[pointing[operand.name]]
            check_end(operand.name, np.asarray(inputs[operand.name]), entries)


def check_end(name: str, pointers: np.ndarray, entries: int) -> None:
    """Raise :class:`InputError` for pointers to where rows begin that do not end at the number of
    entries."""
    last = int(pointers[-1])
    if last != entries:
        raise InputError(f"{name} ends at {last}; allowed: {entries}, the number of entries")


def _check(operand: Operand, array: np.ndarray) -> None:
    wanted = operand.stored.shape
    if array.shape != wanted:
        raise InputError(f"{operand.name} has the shape {array.shape}; allowed: {wanted}")
    check_entries(operand, array)


def check_entries(operand: Operand, array: np.ndarray) -> None:
    """Raise :class:`InputError` unless the array holds such indices as the operand is to hold, if
    it is to hold any."""
    entries = operand.drawn
    if entries is None:
        return
    if array.dtype.kind not in "iu":
        raise InputError(f"{operand.name} holds {array.dtype}; allowed: {operand.dtype}")
    low, high = int(array.min()), int(array.max())
    if low < 0 or high >= entries.below:
        allowed = f"0 to {entries.below - 1}"
        found = low if low < 0 else high
        raise InputError(f"{operand.name} holds the index {found}; allowed: {allowed}")
    if not entries.sorted:
        return
    falls = np.flatnonzero(np.diff(array.reshape(-1).astype(np.int64)) < 0)
    if falls.size:
        raise InputError(
            f"{operand.name} is not sorted: it falls after entry {falls[0]}; "
            "allowed: entries that never fall"
        )


def indices(generator: np.random.Generator, entries: Entries, count: int) -> np.ndarray:
    """Draw so many indices, all alike or with weights by their skew."""
    if not entries.skew:
        return generator.integers(0, entries.below, count)
    weights = (1 - generator.random(entries.below)) ** (-1 / (entries.skew - 1))
    return generator.choice(entries.below, count, p=weights / weights.sum())


def _pointers(generator: np.random.Generator, operand: Operand, entries: int) -> np.ndarray:
    """Draw where the entries of each row begin: at ends that are drawn, or by rows that are where
    these have a skew."""
    assert operand.drawn is not None
    if operand.drawn.skew:
        rows = replace(operand.drawn, below=operand.size - 1)
        counts = np.bincount(indices(generator, rows, entries), minlength=rows.below)
        return np.concatenate([[0], np.cumsum(counts)])
    ends = np.sort(generator.integers(0, entries + 1, operand.size))
    ends[[0, -1]] = 0, entries
    return ends


def _drawn(
    generator: np.random.Generator, operand: Operand, normal: bool, scale: float, middle: int = 0
) -> np.ndarray:
    if operand.drawn:
        entries = indices(generator, operand.drawn, operand.size)
        if operand.drawn.sorted:
            entries.sort()
        elif operand.size >= SURE:
            first, step = generator.integers((0, 1), operand.size)
            entries[[first, (first + step) % operand.size]] = 0, operand.drawn.below - 1
        return entries.reshape(operand.shape)
    if operand.coded:
        return _codes(generator, operand)
    if operand.element.is_integer:
        whole = generator.integers(-8, 8, operand.shape)
        if normal:
            whole = np.rint(generator.normal(0, 20, operand.shape)).astype(np.int64)
        return np.clip(middle + whole * max(int(scale), 1), *operand.element.limits)
    if normal:
        return generator.standard_normal(operand.shape) * scale
    return (generator.random(operand.shape) * 2 - 1) * scale


def _middles(program: Program) -> dict[str, int]:
    """Return the number that is subtracted from each array of bytes wherever it is read, if that is
    always the same one."""
    found: dict[str, set[float | None]] = {}
    for stage in program.stages:
        for name, number in _read_less(stage.body):
            found.setdefault(name, set()).add(number)
    middles = {}
    for operand in program.operands:
        numbers = found.get(operand.name, set())
        number = next(iter(numbers), None)
        if operand.dtype == BYTE and len(numbers) == 1 and number is not None:
            middles[operand.name] = int(number)
    return middles


def _read_less(node: Expression) -> Iterator[tuple[str, float | None]]:
    """Yield each array that is read, and the number which is subtracted of it at once."""
    number: float | None = None
    match node:
        case Binary("-", Read() as read, Number(number)):
            node = read
    if isinstance(node, Read):
        yield node.name, number
    for child in node.children:
        yield from _read_less(child)


def _codes(generator: np.random.Generator, operand: Operand) -> np.ndarray:
    """Draw from all finite values that an element of up to 8 bits may have."""
    values = operand.element.values
    return generator.choice(values[np.isfinite(values)], operand.shape)
