"""The CUDA C++ of one task: outputs in registers, and reads of their windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from math import prod

from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.kept.sizes import KeptSizes, width
from tilewright.spaces.cuda.reducers import joined, taken
from tilewright.spaces.cuda.rows.values import Scope
from tilewright.spaces.cuda.scalar_code import Value, literal
from tilewright.spaces.cuda.target import VECTOR_BYTES
from tilewright.spaces.derivation.kept.held import tap_index
from tilewright.spaces.derivation.kept.tiles import moved, reach
from tilewright.spaces.derivation.kept.view import Bounded
from tilewright.spaces.derivation.maps.view import Access
from tilewright.spaces.kernels.body import Body
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.language.tree import Read

By = Mapping[str, int]
"""Turns by which each loop is ahead of the task's first; for unrolled loops, the turn itself."""


@dataclass
class Thread:
    """The work of a thread on one task.

    C variables named like the loops say where its task is, and those that ``pointers`` names where
    arrays are. Accumulators are ``s[turn * vector + lane]``.
    """

    sizes: KeptSizes
    pointers: Mapping[str, str]
    names: int = field(default=0)

    def __post_init__(self) -> None:
        self.view = self.sizes.view
        self.lane = self.view.lane
        self.vector = self.sizes.values["vector"]
        self.turns = self.sizes.values["coarsening"]
        self.constants = frozenset(loop.name for loop in self.sizes.written_out)
        indices = (tap_index(self.view, self.view.reads[read]) for read in self.sizes.held)
        self.taps = [index for index in indices if index is not None]

    def by(self, turn: int) -> dict[str, int]:
        """Return the place of a turn in the task."""
        return {self.sizes.across.name: turn} if self.sizes.across else {}

    # -- terms -------------------------------------------------------------------------------

    def hold(self, body: Body) -> None:
        """Write how elements that stay in registers are loaded for all taps."""
        taps = prod(loop.extent for loop in self.view.taps)
        for number, read in enumerate(self.sizes.held):
            access = self.view.reads[read]
            first = moved(access.offset, {}, [loop.name for loop in self.view.taps])
            where = f"{self.pointers[access.array.name]} + {first}"
            apart = access.step(self.lane.name) or 0
            name, count = f"h{number}", self.vector * taps
            body.let(C_TYPES[access.array.dtype], name, count=count)
            if apart == taps:
                take = f"tw_take<{count}, {self._widest(access, taps)}>"
                body.call(take, name, where, f"left * {taps}")
                continue
            with (
                body.loop("int", "i", self.vector, unroll=True, brief=True) as i,
                body.when(f"{i} < left", brief=True),
                body.loop("int", "k", taps, unroll=True, brief=True) as k,
            ):
                element = f"tw::load_global({where} + {i} * {apart} + {k})"
                body.assign(f"{name}[{i} * {taps} + {k}]", element)

    def _widest(self, access: Bounded, taps: int) -> int:
        """Return the most elements that move at a time, if all taps of all lanes are contiguous."""
        size = self.vector * taps
        widest = VECTOR_BYTES // access.array.element.bytes
        rest = access.offset.without(loop.name for loop in self.view.taps)
        steps = [factor for _, factor in rest.terms]
        while any(step % widest for step in (*(f for f in steps if f != taps), size)):
            widest //= 2
        return widest

    def terms(self, body: Body) -> None:
        """Write how unrolled taps join the accumulators, at the turns of the other loops."""
        loaded: dict[tuple[str, ...], str] = {}
        taps = [loop.name for loop in self.sizes.written_out]
        for at in product(*(range(loop.extent) for loop in self.sizes.written_out)):
            for turn in range(self.turns):
                by = {**self.by(turn), **dict(zip(taps, at, strict=True))}
                for i in range(self.vector):
                    scope = self._scope(by, i, body, loaded)
                    is_sum, element = self.view.reducer == "sum", self.view.element
                    factors = scope.factors(element) if is_sum else (element,)
                    texts = list(map(scope.number, factors))
                    state = f"s[{turn * self.vector + i}]"
                    body.assign(state, taken(self.view.reducer, state, texts))

    def join(self, body: Body, state: str, value: str) -> None:
        """Write how a value joins an accumulator."""
        body.assign(state, joined(self.view.reducer, state, value))

    # -- outputs -----------------------------------------------------------------------------

    def outputs(self, body: Body) -> None:
        """Write how outputs are computed from the accumulators and stored."""
        loaded: dict[tuple[str, ...], str] = {}
        for turn in range(self.turns):
            for n, (output, value) in enumerate(
                zip(self.view.outputs, self.view.values, strict=True)
            ):
                kind, name = C_TYPES[output.array.dtype], f"y{turn}_{n}"
                body.let(kind, name, count=self.vector)
                for i in range(self.vector):
                    state = f"s[{turn * self.vector + i}]"
                    found = self._scope(self.by(turn), i, body, loaded, state).number(value)
                    body.assign(f"{name}[{i}]", f"tw::from_float<{kind}>({found})")
                where = self.place(output, self.by(turn))
                step = width(self.view, output, self.vector)
                body.call(f"tw_give<{self.vector}, {step}>", where, name, "left")

    # -- reads -------------------------------------------------------------------------------

    def _scope(
        self,
        by: By,
        i: int,
        body: Body,
        loaded: dict[tuple[str, ...], str],
        state: str = "",
    ) -> Scope:
        """Return the scope in which expressions are written for lane ``i``."""

        def read(node: Read) -> Value:
            if node.name == self.view.state:
                return Value(state)
            return Value(self._value(node, by, i, body, loaded))

        def axis(name: str) -> Value:
            raise TypeError(f"the value of {name} does not count")

        return Scope("float", read, axis, magnitudes(self.view.program))

    def _value(
        self, node: Read, by: By, i: int, body: Body, loaded: dict[tuple[str, ...], str]
    ) -> str:
        """Return C text of an element, which is loaded unless it was before."""
        access = self.view.reads[node]
        if node in self.sizes.held:
            taps = prod(loop.extent for loop in self.view.taps)
            number = self.sizes.held.index(node)
            tap = moved(self.taps[number], by, self.constants).constant
            return f"tw::to_float(h{number}[{i * taps + tap}])"
        step = access.step(self.lane.name)
        varies = any(bound.index.coefficient(self.lane.name) for bound in access.bounds)
        if step == 1 and not varies:
            return f"tw::to_float({self._vector(access, by, body, loaded)}[{i}])"
        own = {**by, self.lane.name: i} if step or varies else by
        tests = self._tests(access, own)
        if step and self.lane.extent % self.vector and i:
            tests = (*tests, f"{i} < left")
        key = (access.array.name, self.place(access, own), *tests)
        if key not in loaded:
            loaded[key] = self._name()
            value = f"tw::to_float(tw::load_global({self.place(access, own)}))"
            if tests:
                value = f"{' && '.join(tests)} ? {value} : {literal(access.outside)}"
            body.let("const float", loaded[key], value)
        return loaded[key]

    def _vector(
        self, access: Bounded, by: By, body: Body, loaded: dict[tuple[str, ...], str]
    ) -> str:
        """Return the variable of a vector of all lanes, which is loaded unless it was before."""
        tests, where = self._tests(access, by), self.place(access, by)
        key = (access.array.name, where, *tests)
        if key not in loaded:
            kind, name = C_TYPES[access.array.dtype], self._name()
            loaded[key] = name
            body.let(kind, name, count=self.vector)
            with body.where(tests, brief=True):
                take = f"tw_take<{self.vector}, {width(self.view, access, self.vector)}>"
                body.call(take, name, where, "left")
            if tests:
                with body.otherwise(brief=True):
                    outside = f"tw::from_float<{kind}>({literal(access.outside)})"
                    body.call("tw_fill", name, outside)
        return loaded[key]

    def _tests(self, access: Bounded, by: By) -> tuple[str, ...]:
        """Return C tests that an element is within its array, as far as that is not known."""
        tests: list[str] = []
        for bound in access.bounds:
            index = moved(bound.index, by, self.constants)
            low, high = reach(index, self._ranges)
            tests += [f"{index} >= 0"] * (low < 0)
            tests += [f"{index} < {bound.extent}"] * (high >= bound.extent)
        return tuple(tests)

    # -- numbers -----------------------------------------------------------------------------

    @property
    def _ranges(self) -> dict[str, tuple[int, int]]:
        ranges = {name: (0, extent - 1) for name, extent in self.view.extents.items()}
        if self.sizes.across:
            ranges[self.sizes.across.name] = (0, self.sizes.across.extent - self.turns)
        return ranges

    def place(self, access: Access, by: By) -> str:
        """Return C text of the address of an access."""
        offset = moved(access.offset, by, self.constants)
        return f"{self.pointers[access.array.name]} + {offset}"

    def _name(self) -> str:
        self.names += 1
        return f"v{self.names}"
