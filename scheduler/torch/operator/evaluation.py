"""Compute workloads by torch's own operators: where a process has no kernel, and for gradients.

Each stage of a program is computed by broadcasting over its axes, a sum of products by
``torch.einsum``, as :mod:`spaces.language.evaluation` does in float64. Here values are of the dtype
that kernels compute in. Operators of torch record themselves, so results have gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from tilewright.scheduler.torch.kernels.open_keys import calling_at, size_of, workload_at
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.cycles import Cycle, cycles
from tilewright.spaces.language.evaluation import OPERATIONS, factors_of, literal
from tilewright.spaces.language.functions import REDUCERS, Reducer
from tilewright.spaces.language.kinds import KEEPING
from tilewright.spaces.language.philox import LARGEST, first_word
from tilewright.spaces.language.program import Output, Program, Stage
from tilewright.spaces.workloads.calling import calling_of
from tilewright.spaces.workloads.workload import Workload

Value = Any
"""A tensor that broadcasts over the axes of a stage, or a number."""

FUNCTIONS: Mapping[str, Callable[..., Tensor]] = {
    "gelu": lambda x: x.clamp(min=-40.0) * torch.special.ndtr(x),
    "gelu_tanh": lambda x: functional.gelu(x.clamp(min=-40.0), approximate="tanh"),
    "silu": lambda x: functional.silu(x.clamp(min=-80.0)),
    "min": torch.minimum,
    "max": torch.maximum,
    "random": lambda *given: _random(given),
}
"""The functions of the language that torch calls or defines otherwise."""


def _random(arguments: Sequence[Tensor]) -> Tensor:
    """Compute :func:`spaces.language.philox.random_numbers` of tensors."""
    given = [each.to(torch.float32) for each in torch.broadcast_tensors(*arguments)]
    words = (each.nan_to_num(0.0).clamp(0, LARGEST).to(torch.int64) for each in given)
    numbers = (first_word(*words) >> 8).to(arguments[0].dtype) * 2.0**-24
    unknown = given[0].isnan() | given[1].isnan() | given[2].isnan()
    return torch.where(unknown, torch.nan, numbers)


class TorchFunction:
    """A workload computed by torch, which is called as its kernel is: with operands in order, and
    ``out`` if the result has a place. Several outputs are a tuple."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self._program = workload.written
        self._outputs = calling_of(workload).outputs

    def __call__(self, *operands: Tensor, out: Any = None) -> Any:
        """Return the outputs, of the dtypes and strides of the kernel's."""
        found = evaluated(self._program, operands)
        several = len(self._outputs) > 1
        wanted = (out if several else [out]) if out is not None else [None] * len(found)
        made = [
            _placed(value, array, place)
            for value, array, place in zip(found, self._outputs, wanted, strict=True)
        ]
        return tuple(made) if several else made[0]


class TorchFunctions:
    """The workloads of an open key computed by torch: each call at the size that it has."""

    def __init__(self, key: str) -> None:
        self.key = key
        self._known: dict[int, TorchFunction] = {}

    def __call__(self, *operands: Tensor, out: Any = None) -> Any:
        """Return the outputs as :class:`TorchFunction` does; empty ones of no points."""
        size = int(size_of(self.key, operands))
        self._check(operands, size)
        if size == 0:
            return self._empty(operands[0].device) if out is None else out
        if size not in self._known:
            self._known[size] = TorchFunction(workload_at(self.key, operands))
        return self._known[size](*operands, out=out)

    def _check(self, operands: Sequence[Tensor], size: int) -> None:
        """Check the shapes of operands; :class:`InputError` if they do not fit."""
        calling, shapes = calling_at(self.key, size)
        if len(operands) != len(calling.inputs):
            raise InputError(f"{len(operands)} operands are given; allowed: {len(calling.inputs)}")
        for given, array, shape in zip(operands, calling.inputs, shapes, strict=False):
            if given.shape != shape:
                raise InputError(f"{array.name} has shape {tuple(given.shape)}; allowed: {shape}")

    def _empty(self, device: torch.device) -> Any:
        calling, shapes = calling_at(self.key, 0)
        made = tuple(
            torch.empty(shape, dtype=getattr(torch, array.dtype), device=device)
            for array, shape in zip(calling.outputs, shapes[len(calling.inputs) :], strict=True)
        )
        return made if len(made) > 1 else made[0]


def _placed(value: Tensor, array: Any, place: Tensor | None) -> Tensor:
    """Return the value as an output lies, in ``place`` if there is one."""
    if place is None:
        kind = getattr(torch, array.dtype)
        place = torch.empty_strided(array.shape, array.strides, dtype=kind, device=value.device)
    return place.copy_(value)


def evaluated(program: Program, operands: Sequence[Tensor]) -> list[Tensor]:
    """Return the outputs in order, in their dtypes."""
    wide = getattr(torch, program.computed_in)
    values: dict[str, Tensor] = {
        operand.name: given.to(wide if given.dtype.is_floating_point else torch.int64)
        for operand, given in zip(program.operands, operands, strict=True)
    }
    stepped = {name: cycle for cycle in cycles(program) for name in cycle.stages}
    for stage in program.stages:
        if stage.name in values:
            continue
        if stage.name in stepped:
            values |= _step_by_step(program, stepped[stage.name], values, wide)
            continue
        grid = _grid(program, stage, operands[0].device)
        values[stage.name] = _Evaluation(program, stage, values, grid, wide).value()
    return [_converted(values[output.name], output) for output in program.outputs]


def _step_by_step(
    program: Program, cycle: Cycle, values: Mapping[str, Tensor], wide: torch.dtype
) -> dict[str, Tensor]:
    """Return the stages of a cycle, which are computed step by step."""
    stages = [program.stage[name] for name in cycle.stages]
    steps = {stage.name: stage.axes.index(cycle.axis) for stage in stages}
    extents = tuple((a, 1 if a == cycle.axis else n) for a, n in program.extents)
    extent = program.extent[cycle.axis]
    made, device = replace(program, extents=extents), next(iter(values.values())).device
    last = {
        stage.name: torch.zeros(made.shape(stage.axes), dtype=wide, device=device)
        for stage in stages
    }
    found: dict[str, list[Tensor]] = {stage.name: [] for stage in stages}
    for step in cycle.steps(extent):
        now = dict(last)
        for stage in stages:
            both = {
                n: torch.cat([last[n], now[n]][:: cycle.direction], dimension)
                for n, dimension in steps.items()
            }
            grid = _grid(made, stage, device)
            grid[cycle.axis] = grid[cycle.axis] + step
            known = {**values, **both}
            own = _Step(made, stage, known, grid, wide, cycle, extent, step, steps)
            now[stage.name] = own.value()
            found[stage.name].append(now[stage.name])
        last = now
    return {
        name: torch.cat(every[:: cycle.direction], steps[name]) for name, every in found.items()
    }


def _converted(value: Tensor, output: Output) -> Tensor:
    """Return a value in the dtype of an output; integers stay in its range, as those of kernels
    do."""
    kind = getattr(torch, output.dtype)
    if output.element.is_integer:
        limits = torch.iinfo(kind)
        value = value.clamp(limits.min, limits.max)
    return value.to(kind)


def _grid(program: Program, stage: Stage, device: torch.device) -> dict[str, Tensor]:
    """Return the values of each axis along a dimension of its own, those that are reduced over
    last."""
    names = (*stage.axes, *stage.over)
    return {
        name: torch.arange(program.extent[name], device=device).view(
            [-1 if other == name else 1 for other in names]
        )
        for name in names
    }


@dataclass(frozen=True)
class _Evaluation:
    """The meaning (:class:`spaces.language.meaning.Meaning`) of one stage as tensors that
    broadcast over its axes, those that it reduces over last."""

    program: Program
    stage: Stage
    values: Mapping[str, Tensor]
    grid: Mapping[str, Tensor]
    wide: torch.dtype

    @property
    def _extents(self) -> tuple[int, ...]:
        return self.program.shape((*self.stage.axes, *self.stage.over))

    @property
    def kept(self) -> int:
        """The number of dimensions of the result."""
        return len(self.stage.axes)

    def value(self) -> Tensor:
        """Return the stage."""
        holding = [condition.fold(self) for condition in self.program.bounding(self.stage)]
        mask = reduce(torch.logical_and, holding) if holding else None
        factors = factors_of(self.stage)
        if len(factors) > 1:
            found = self._masked(self._alike([factor.fold(self) for factor in factors]), mask)
            if found is not None:
                return self._sum_of_products(found)
        body = self._tensor(self.stage.body.fold(self)).expand(self._extents)
        if self.stage.reducer is None:
            return body
        return self._reduced(REDUCERS[self.stage.reducer], body, mask)

    def _alike(self, values: Sequence[Value]) -> list[Tensor]:
        """Return the tensors of one dtype: integers, if all are."""
        found = [self._tensor(value) for value in values]
        real = any(each.is_floating_point() for each in found)
        return [each.to(self.wide) for each in found] if real else found

    def _masked(self, factors: list[Tensor], mask: Tensor | None) -> list[Tensor] | None:
        """Return the factors with zeros in one that has all axes of the mask; None if none has."""
        if mask is None:
            return factors
        for place, factor in enumerate(factors):
            if torch.broadcast_shapes(factor.shape, mask.shape) == factor.shape:
                rest = [*factors[:place], *factors[place + 1 :]]
                return [torch.where(mask, factor, 0), *rest]
        return None

    def _sum_of_products(self, factors: Sequence[Tensor]) -> Tensor:
        extents = self._extents
        arguments: list[Any] = []
        found = set[int]()
        for factor in factors:
            places = [place for place, extent in enumerate(factor.shape) if extent > 1]
            found.update(places)
            arguments += [factor.reshape([factor.shape[place] for place in places]), places]
        result = [place for place in range(self.kept) if place in found]
        sums = torch.einsum(*arguments, result)
        repeated = prod(extents[p] for p in range(self.kept, len(extents)) if p not in found)
        shape = [extents[place] if place in found else 1 for place in range(self.kept)]
        return (sums * repeated).reshape(shape).expand(extents[: self.kept])

    def _reduced(self, reducer: Reducer, body: Tensor, mask: Tensor | None) -> Tensor:
        if mask is not None:
            body = torch.where(mask, body, _identity(reducer, body.dtype))
        flat = body.reshape(*body.shape[: self.kept], -1)
        if reducer.argument:
            return self._place(reducer, flat, mask)
        if reducer.name in ("sum", "prod"):
            made: Tensor = getattr(flat, reducer.name)(-1)
            return made
        return flat.amax(-1) if reducer.identity < 0 else flat.amin(-1)

    def _place(self, reducer: Reducer, flat: Tensor, mask: Tensor | None) -> Tensor:
        """Return the first place of the value that a reducer finds; NaN is such a value, as in
        NumPy."""
        found = flat.amax(-1) if reducer.identity < 0 else flat.amin(-1)
        hits = (flat == found[..., None]) | (flat != flat)
        if mask is not None:
            hits &= mask.expand(self._extents).reshape(flat.shape)
        count = flat.shape[-1]
        places = torch.arange(count, device=flat.device)
        return torch.where(hits, places, count).amin(-1) % count

    # -- the meaning of nodes --------------------------------------------------------------------

    def number(self, value: float) -> Value:
        return literal(value)

    def axis(self, name: str) -> Value:
        return self.grid[name]

    def read(self, name: str, indices: Sequence[Value], outside: float | None) -> Value:
        array = self.values[name]
        places = [self._tensor(index) for index in indices]
        if (plain := self._plain(array, places)) is not None:
            return plain
        pairs = list(zip(places, array.shape, strict=True))
        entries = array[tuple(place.clamp(0, extent - 1) for place, extent in pairs)]
        if not indices or outside is None:
            return entries
        within = [(place >= 0) & (place < extent) for place, extent in pairs]
        return torch.where(reduce(torch.logical_and, within), entries, literal(outside))

    def negation(self, inner: Value) -> Value:
        return -inner

    def binary(self, operator: str, left: Value, right: Value) -> Value:
        if operator == "/":
            left, right = self._real(left), self._real(right)
        return OPERATIONS[operator](left, right)

    def comparison(self, operator: str, left: Value, right: Value) -> Value:
        return OPERATIONS[operator](self._tensor(left), right)

    def select(self, condition: Value, then: Value, otherwise: Value) -> Value:
        return torch.where(condition, self._tensor(then), self._tensor(otherwise))

    def call(self, function: str, arguments: Sequence[Value]) -> Value:
        given = self._alike(arguments)
        kind = getattr(torch, function, None)
        if isinstance(kind, torch.dtype):
            return given[0].to(torch.float32).to(kind).to(self.wide)
        if function not in KEEPING:
            given = [each.to(self.wide) for each in given]
        return (FUNCTIONS.get(function) or getattr(torch, function))(*given)

    def _tensor(self, value: Value) -> Tensor:
        if isinstance(value, Tensor):
            return value
        kind = torch.int64 if isinstance(value, int) else self.wide
        device = next(iter(self.values.values())).device
        return torch.full([1] * len(self.grid), value, dtype=kind, device=device)

    def _real(self, value: Value) -> Value:
        return value.to(self.wide) if isinstance(value, Tensor) else float(value)

    def _plain(self, array: Tensor, places: Sequence[Tensor]) -> Tensor | None:
        """Return the array as a view along the axes that its indices are; None if one is no
        axis."""
        names = list(self.grid)
        axes = [
            dimension
            for place in places
            for dimension, axis in enumerate(self.grid.values())
            if axis is place
        ]
        if len(axes) < len(places) or len(set(axes)) < len(axes):
            return None
        for place, axis in enumerate(axes):
            array = array.narrow(place, 0, self.program.extent[names[axis]])
        view = array.permute(sorted(range(len(axes)), key=axes.__getitem__))
        extents = [self.program.extent[name] if d in axes else 1 for d, name in enumerate(names)]
        return view.reshape(extents)


@dataclass(frozen=True)
class _Step(_Evaluation):
    """The meaning of a stage at one ``step`` of a ``cycle`` along an axis of an ``extent``; of
    stages of this, ``steps`` names the dimension along which the last step and this one are known.
    """

    cycle: Cycle
    extent: int
    step: int
    steps: Mapping[str, int]

    def read(self, name: str, indices: Sequence[Value], outside: float | None) -> Value:
        if name not in self.steps:
            return super().read(name, indices, outside)
        places = [self._tensor(index) for index in indices]
        place = places[self.steps[name]]
        within = (place >= 0) & (place < self.extent)
        places[self.steps[name]] = place - (self.step - (self.cycle.direction > 0))
        found = super().read(name, places, outside)
        return found if outside is None else torch.where(within, found, literal(outside))

    def _plain(self, array: Tensor, places: Sequence[Tensor]) -> Tensor | None:
        steps = self.grid[self.cycle.axis]
        return None if any(p is steps for p in places) else super()._plain(array, places)


def _identity(reducer: Reducer, kind: torch.dtype) -> float:
    """Return the result of no values, among integers the least or the largest one."""
    if kind.is_floating_point or abs(reducer.identity) < 2:
        return reducer.identity
    limits = torch.iinfo(kind)
    return limits.min if reducer.identity < 0 else limits.max
