"""Inputs at the edges of what programs allow, and what kernels may make of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.spaces.language import evaluation
from tilewright.spaces.language.functions import REDUCERS
from tilewright.spaces.language.program import Operand, Program, Stage
from tilewright.spaces.language.tree import AxisValue, Binary, Call, Expression, Read

Arrays = Mapping[str, np.ndarray]
Fill = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
SINGLE = np.dtype(np.float32)
LEAST, INF, NAN = float(np.finfo(np.float32).min), np.inf, np.nan


def _normal(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return generator.standard_normal(shape)


def _with(value: float, share: float) -> Fill:
    """Normal numbers, among which is ``value``."""

    def fill(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return np.where(generator.random(shape) < share, value, _normal(generator, shape))

    return fill


def _rows_of(value: float) -> Fill:
    """Normal numbers, and every other slice along the first axis of ``value`` throughout."""

    def fill(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        found = _normal(generator, shape)
        found[::2] = value
        return found

    return fill


def _one(value: float) -> Fill:
    """Normal numbers but for one."""

    def fill(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        found = _normal(generator, shape)
        found.reshape(-1)[generator.integers(found.size)] = value
        return found

    return fill


def _first(value: float) -> Fill:
    """Normal numbers but for the first of the last axis."""

    def fill(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        found = _normal(generator, shape)
        found[..., :1] = value
        return found

    return fill


def _all_but_last(value: float) -> Fill:
    """Nothing but ``value`` until the last elements of the last axis."""

    def fill(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        found = np.full(shape, value)
        found[..., -2:] = _normal(generator, (*shape[:-1], min(2, shape[-1])))
        return found

    return fill


def _scaled(by: float, offset: float = 0.0) -> Fill:
    return lambda generator, shape: _normal(generator, shape) * by + offset


FILLS: Mapping[str, Fill] = {
    "normal": _normal,
    "wide": _scaled(60.0),
    "far apart": _scaled(3e9),
    "large": _scaled(1e38),
    "tiny": _scaled(1e-38),
    "far from zero": _scaled(10.0, 1e7),
    "equal": lambda generator, shape: np.full(shape, 0.1),
    "zeros": lambda generator, shape: np.zeros(shape),
    "one outlier": _one(1e6),
    "an outlier first": _first(1e6),
    "one largest": _one(3.4e38),
    "one infinity": _one(INF),
    "one NaN": _one(NAN),
    "few infinities": _with(-INF, 0.1),
    "mostly -inf": _with(-INF, 0.95),
    "mostly inf": _with(INF, 0.9),
    "some NaN": _with(NAN, 0.05),
    "mostly least": _with(LEAST, 0.9),
    "rows of -inf": _rows_of(-INF),
    "rows of inf": _rows_of(INF),
    "rows of least": _rows_of(LEAST),
    "rows of NaN": _rows_of(NAN),
    "rows of -1e37": _rows_of(-1e37),
    "-inf until the end": _all_but_last(-INF),
    "least until the end": _all_but_last(LEAST),
    "inf until the end": _all_but_last(INF),
}


def edge_inputs(program: Program, fills: Mapping[str, str], seed: int = 0) -> dict[str, np.ndarray]:
    """Inputs that are filled as ``fills`` say by operand; tables are drawn, with both limits."""
    generator = np.random.default_rng(seed)
    return {o.name: _filled(o, fills.get(o.name, "normal"), generator) for o in program.operands}


def _filled(operand: Operand, fill: str, generator: np.random.Generator) -> np.ndarray:
    if operand.drawn is not None:
        entries = generator.integers(0, operand.drawn.below, operand.shape)
        entries.reshape(-1)[:1] = 0
        entries.reshape(-1)[-1:] = operand.drawn.below - 1
        return (np.sort(entries) if operand.drawn.sorted else entries).astype(operand.element.numpy)
    if operand.element.is_integer:
        return generator.integers(-8, 8, operand.shape).astype(operand.element.numpy)
    with np.errstate(all="ignore"):
        found = FILLS[fill](generator, operand.shape).astype(operand.element.numpy)
    if operand.element.name == "bfloat16":  # products may take subnormal elements for 0
        found[np.abs(found.astype(np.float32)) < np.finfo(np.float32).tiny] = 0
    return found


@dataclass(frozen=True)
class _Single(evaluation.Exact):
    """The meaning with each operation rounded to float32: infinite and NaN where that is. Factors
    are rounded to ``narrow`` first, as operands of a second product are."""

    narrow: np.dtype = SINGLE

    def number(self, value: float) -> Any:
        return _single(super().number(value))

    def binary(self, operator: str, left: Any, right: Any) -> Any:
        if operator == "*":
            left, right = _rounded(left, self.narrow), _rounded(right, self.narrow)
        return _single(super().binary(operator, left, right))

    def call(self, function: str, arguments: Sequence[Any]) -> Any:
        return _single(super().call(function, arguments))


def _rounded(value: Any, to: np.dtype) -> Any:
    array = np.asarray(value)
    return array.astype(to).astype(np.float64) if array.dtype.kind == "f" else value


def _single(value: Any) -> Any:
    return _rounded(value, SINGLE)


UNKNOWN = (NAN, INF, -INF, None, 0.7390851)
"""Values of a sum that may overflow on the way, by the order in which it is added up. None draws
one of them for each sum on its own. The number shows which outputs depend on such sums where all
other outcomes are NaN; no kernel finds it by chance."""


def outcomes(program: Program, inputs: Mapping[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
    """Return the outputs as float32 has them, for each of ``UNKNOWN``; and, where an operand has 16
    bits, with all factors rounded to these."""
    elements = [o.element for o in program.operands if not o.element.is_integer]
    narrow = {e.numpy for e in elements if e.bytes == 2}
    return [
        *(in_single(program, inputs, unknown) for unknown in UNKNOWN),
        *(in_single(program, inputs, NAN, np.dtype(each)) for each in sorted(narrow, key=str)),
    ]


def in_single(
    program: Program,
    inputs: Mapping[str, np.ndarray],
    unknown: float | None = NAN,
    narrow: np.dtype = SINGLE,
) -> dict[str, np.ndarray]:
    """Return the outputs as float32 has them but for rounding; ``unknown`` where a sum may overflow
    on the way. Factors are rounded to ``narrow``."""
    exact = evaluation.evaluate_stages(program, inputs)
    values = {o.name: exact[o.name] for o in program.operands}
    with np.errstate(all="ignore"):
        for stage in program.stages:
            values[stage.name] = _stage_in_single(program, stage, values, exact, unknown, narrow)
    return {o.name: values[o.name] for o in program.outputs}


def _overflown(found: np.ndarray, unknown: float | None) -> np.ndarray:
    """Return values in the place of those that may overflow on the way."""
    if unknown is not None:
        return np.full_like(found, unknown)
    return np.random.default_rng(28).choice([NAN, INF, -INF], found.shape)


def _stage_in_single(
    program: Program,
    stage: Stage,
    values: Arrays,
    exact: Arrays,
    unknown: float | None,
    narrow: np.dtype,
) -> np.ndarray:
    grid = evaluation._grid(program, (*stage.axes, *stage.over), {})
    meaning = _Single(values, grid, {}, bounded=bool(program.bounding(stage)), narrow=narrow)
    body = np.broadcast_to(
        np.asarray(stage.body.fold(meaning)),
        np.broadcast_shapes(*(axis.shape for axis in grid.values())),
    )
    if stage.reducer is None:
        return body
    mask = None
    for condition in program.bounding(stage):
        held = condition.fold(meaning)
        mask = held if mask is None else mask & held
    kept = len(stage.axes)
    found = evaluation._reduced(REDUCERS[stage.reducer], body, mask, kept)
    if REDUCERS[stage.reducer].argument and body.dtype.kind == "f":
        meant = stage.body.fold(evaluation.Exact(exact, grid, {}, bounded=mask is not None))
        other = _kind(np.broadcast_to(meant, body.shape)) != _kind(body)
        return np.where(other.reshape((*body.shape[:kept], -1)).any(axis=-1), NAN, found)

    def sizes(part: Expression, nothing: float) -> np.ndarray:
        """Magnitudes of finite elements, along the last axis; ``nothing`` of all others."""
        terms = part.fold(evaluation.Exact(values, grid, {}, bounded=mask is not None))
        size = np.abs(np.broadcast_to(terms, body.shape))
        size = np.where(np.isfinite(size), size, nothing)
        size = size if mask is None else np.where(mask, size, nothing)
        return size.reshape((*body.shape[:kept], -1))

    if stage.reducer == "sum" and body.dtype.kind == "f":
        most = sizes(_undivided(program, stage, stage.body), 0).sum(axis=-1)
        found = np.where(most > -LEAST, _overflown(found, unknown), found)
    if stage.reducer == "prod" and body.dtype.kind == "f":
        factors = sizes(stage.body, 1)
        overflows = np.maximum(factors, 1).prod(axis=-1) > -LEAST
        vanishes = np.minimum(factors, 1).prod(axis=-1) < np.finfo(np.float32).tiny
        found = np.where(overflows, found * INF, found)
        found = np.where(overflows & vanishes, _overflown(found, unknown), found)
    return _single(found)


def _undivided(program: Program, stage: Stage, node: Expression) -> Expression:
    """What a sum is of, its weights those of a softmax before they are divided by their sum."""
    match node:
        case Binary("*", left, right):
            return Binary("*", _undivided(program, stage, left), _undivided(program, stage, right))
        case Binary("/", Call("exp" | "exp2") as weight, total) if total.axes.isdisjoint(
            stage.over
        ):
            return weight
        case Read(name, indices) if name in program.stage:
            source = program.stage[name]
            if source.reducer is None and indices == tuple(map(AxisValue, source.axes)):
                return _undivided(program, stage, source.body)
    return node


def wrong(
    found: np.ndarray,
    exact: np.ndarray,
    singles: Sequence[np.ndarray],
    low: np.ndarray,
    high: np.ndarray,
) -> np.ndarray:
    """Where ``found`` is nothing that it may be: NaN and infinite are what the program is, exactly
    or by operations in float32, of which ``singles`` are the outcomes; all else is from ``low`` to
    ``high``."""
    stored = np.asarray(found)
    value = stored.astype(np.float64)
    if stored.dtype.kind not in "iu":
        with np.errstate(all="ignore"):
            exact, *singles = (x.astype(stored.dtype).astype(np.float64) for x in (exact, *singles))
    meant, kind = _kind(exact), _kind(value)
    free = (low == -np.inf) & (high == np.inf)
    between = (low <= value) & (value <= high)
    right = (kind == meant) & ((kind != 0) | between)
    right |= np.isinf(value) & between & ~free
    kinds = [_kind(single) for single in singles]
    for rounded in kinds:
        right |= (meant != rounded) & (kind == rounded)
    # sums that may overflow, each in its own way, come together
    right |= (np.ptp(kinds, axis=0) > 0) & (kind != 0)
    for single in singles[1:]:  # where it differs from the first, a sum may have overflowed
        differs = ~np.isclose(single, singles[0], equal_nan=True)
        right |= differs & np.isclose(value, single, rtol=1e-3)
    return ~right


def _kind(x: np.ndarray) -> np.ndarray:
    """0 of finite numbers, 1 of NaN, 2 and 3 of infinities."""
    return np.select([np.isnan(x), x == np.inf, x == -np.inf], [1, 2, 3], 0)
