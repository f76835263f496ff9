"""A kernel that judges, for one stage of a program: each element's value and interval by a group of
threads, which share what is reduced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import prod

from tilewright.measure.cuda.trusted.meaning import CodeMeaning, OperandArray, StageArray
from tilewright.measure.cuda.trusted.reducing import State, reduction
from tilewright.measure.cuda.trusted.statements import WHOLE, Statements, Variable
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.derivation.rounding.approximate import Approximate
from tilewright.spaces.kernel import Launch
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.numerics.interval import Rules
from tilewright.spaces.workloads.array import Array

THREADS, MOST_LANES = 256, 512
ENOUGH = 1 << 18
"""Threads that keep a device busy, if there is work for so many."""
SIZES = {"Place": 16, "Three": 48}
"""Bytes of a thread's states in shared memory, multiples of 16; others are a :data:`WORD`."""
WORD = 8


@dataclass(frozen=True)
class Surroundings:
    """Data that the stages of a program share: the addresses of arrays and (C text, by output) of
    ``bounds``, and the axis of which only some ``rows`` are computed, whose numbers are at
    ``which``.
    """

    program: Program
    arrays: Mapping[str, OperandArray | StageArray]
    bounds: Mapping[str, tuple[Array, str]]
    signature: str
    row_axis: str | None = None
    rows: int = 0
    which: str = ""

    def knowing(self, arrays: Mapping[str, OperandArray | StageArray]) -> Surroundings:
        """Return the same with further arrays."""
        return replace(self, arrays={**self.arrays, **arrays})

    def extent(self, axis: str) -> int:
        """Return the extent of an axis, or of its part."""
        return self.rows if axis == self.row_axis else self.program.extent[axis]


@dataclass(frozen=True)
class StageKernel:
    """The text of a stage's function, and its launch."""

    around: Surroundings
    stage: Stage
    entry: str

    @property
    def size(self) -> int:
        """Elements of the stage, or of its part."""
        return prod(map(self.around.extent, self.stage.axes))

    @property
    def is_integer(self) -> bool:
        """Tell whether the stage computes integers alone, which are exact in every kernel."""
        meaning = self._meaning(Statements(), (*self.stage.axes, *self.stage.over))
        if self.stage.reducer is None:
            return self.stage.body.fold(meaning).interval is None
        states, finish = reduction(self.around.program, self.stage, meaning)
        return finish(meaning, _variables(meaning.code, states)).interval is None

    @property
    def shared_axis(self) -> str | None:
        """The axis that threads share: the longest of those that are reduced."""
        extent = self.around.program.extent
        return max(self.stage.over, key=lambda axis: extent[axis], default=None)

    @property
    def lanes(self) -> int:
        """Threads for an element: a power of two."""
        if self.shared_axis is None:
            return 1
        extent, lanes = self.around.program.extent[self.shared_axis], 1
        while 2 * lanes <= min(extent, MOST_LANES) and self.size * lanes < ENOUGH:
            lanes *= 2
        return lanes

    @property
    def launch(self) -> Launch:
        """Launch as many blocks as it takes."""
        threads = max(THREADS, self.lanes)
        blocks = int(ceil_div(self.size * self.lanes, threads))
        shared = threads * sum(map(_bytes, self._states())) if self.lanes > 1 else 0
        return Launch((blocks, 1, 1), (threads, 1, 1), shared_bytes=shared, entry=self.entry)

    @property
    def text(self) -> str:
        """The function."""
        threads = self.launch.block[0]
        head = f'extern "C" __global__ void __launch_bounds__({threads}) {self.entry}'
        lines = [f"{head}({self.around.signature}) {{", *self._element(), *self._body(), "}"]
        return "\n".join(lines) + "\n"

    def _states(self) -> Sequence[State]:
        meaning = self._meaning(Statements(), (*self.stage.axes, *self.stage.over))
        return reduction(self.around.program, self.stage, meaning)[0]

    def _element(self) -> Iterator[str]:
        """Write code for the element that a thread computes, and the values of its axes. Threads
        beyond the last element compute that one again.
        """
        threads = self.launch.block[0]
        yield f"const i64 thread = (i64)blockIdx.x * {threads} + threadIdx.x;"
        yield f"const i64 lane = thread % {self.lanes}, own = thread / {self.lanes};"
        yield f"const i64 element = own < {self.size} ? own : {self.size - 1};"
        step = self.size
        for axis in self.stage.axes:
            extent = self.around.extent(axis)
            step //= extent
            place = f"element / {step} % {extent}"
            if axis == self.around.row_axis:
                yield f"const i64 row = {place};"
                place = f"tw::load_global({self.around.which} + row)"
            yield f"const i64 {self._name(axis)} = {place};"

    def _body(self) -> Iterator[str]:
        code = Statements()
        if self.stage.reducer is None:
            meaning = self._meaning(code, self.stage.axes)
            found = self.stage.body.fold(meaning)
            yield from self._stored(code, meaning, found)
            return
        inner = self._meaning(Statements(), (*self.stage.axes, *self.stage.over))
        holding = [c.fold(inner).value for c in self.around.program.bounding(self.stage)]
        conditions = [f"if (!{condition}) continue;" for condition in holding]
        before = len(inner.code.lines)
        states, finish = reduction(self.around.program, self.stage, inner)
        yield from (f"{s.kind} s{n} = {s.start};" for n, s in enumerate(states))
        yield from self._loops()
        yield from (*inner.code.lines[:before], *conditions, *inner.code.lines[before:])
        yield from (f"s{n} = {s.joined(f's{n}', s.term)};" for n, s in enumerate(states))
        yield "}"
        yield from self._joined(states)
        outer = self._meaning(code, self.stage.axes)
        yield from self._stored(code, outer, finish(outer, _variables(code, states)))

    def _loops(self) -> Iterator[str]:
        """Write loops over all points that are reduced; a lane has every so many of one axis."""
        for axis in self.stage.over:
            name, extent = self._name(axis), self.around.program.extent[axis]
            first, step = ("lane", self.lanes) if axis == self.shared_axis else ("0", 1)
            brace = " {" if axis == self.stage.over[-1] else ""
            yield f"for (i64 {name} = {first}; {name} < {extent}; {name} += {step}){brace}"

    def _joined(self, states: Sequence[State]) -> Iterator[str]:
        """Yield the states of an element's lanes, in its first one."""
        if self.lanes == 1:
            return
        sizes = list(map(_bytes, states))
        starts = [self.launch.block[0] * start for start in accumulate(sizes, initial=0)]
        slots = [f"slots + {start} + {size} * " for start, size in zip(starts, sizes, strict=False)]
        yield "const u32 slots = tw::shared_base();"
        yield f"for (int half = {self.lanes // 2}; half > 0; half /= 2) {{"
        for n, slot in enumerate(slots):
            yield f"tw::store_shared({slot}threadIdx.x, s{n});"
        yield "tw::sync_block();"
        yield "if (lane < half) {"
        for n, (s, slot) in enumerate(zip(states, slots, strict=True)):
            other = f"tw::load_shared<{s.kind}>({slot}(threadIdx.x + half))"
            yield f"s{n} = {s.joined(f's{n}', other)};"
        yield "}"
        yield "tw::sync_block();"
        yield "}"

    def _stored(self, code: Statements, meaning: CodeMeaning, found: Approximate) -> Iterator[str]:
        """Yield the statements that keep an element for later stages, and what is allowed of an
        output."""
        stores: list[str] = []
        name = self.stage.name
        if name in self.around.arrays:
            kept = self.around.arrays[name]
            assert isinstance(kept, StageArray)
            stores += kept.store(found, "element")
        if name in self.around.bounds:
            output = next(o for o in self.around.program.outputs if o.name == name)
            array, pointer = self.around.bounds[name]
            ends = meaning.rules.stored(meaning.bounds(found), output.element)
            axes = zip(map(self._name, self.stage.axes), array.strides[1:], strict=True)
            place = " + ".join(f"{axis} * {stride}" for axis, stride in axes) or "0"
            for number, end in enumerate(ends):
                at = f"{pointer} + {number * output.size} + {place}"
                stores.append(f"tw::store_global({at}, ({C_TYPES[array.dtype]}){end});")
        yield from code.lines
        yield "if (lane == 0 && own == element) {"
        yield from stores
        yield "}"

    def _meaning(self, code: Statements, axes: Sequence[str]) -> CodeMeaning:
        program, row_axis = self.around.program, self.around.row_axis
        row = None
        if row_axis is not None and row_axis in self.stage.axes:
            row = row_axis, Variable(code, "row", WHOLE)
        variables = {axis: Variable(code, self._name(axis), WHOLE) for axis in axes}
        rules = Rules(code, program.computed_in, absorbs=True, sums=program.accumulator)
        return CodeMeaning(rules, code, self.around.arrays, variables, program.extent, row)

    def _name(self, axis: str) -> str:
        """Name an axis in C, independent of its name in the program."""
        return f"a{list(self.around.program.extent).index(axis)}"


def _bytes(state: State) -> int:
    return SIZES.get(state.kind, WORD)


def _variables(code: Statements, states: Sequence[State]) -> list[Variable]:
    """Return the states by their names in C."""
    return [Variable(code, f"s{n}", state.kind) for n, state in enumerate(states)]
