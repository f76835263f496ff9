"""Elements that a thread reads: each is loaded once in a scope, neighbours together."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import gcd
from types import MappingProxyType

from tilewright.spaces.algebra.atoms import Entry
from tilewright.spaces.algebra.index import Index, variable
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.rows.values import Scope
from tilewright.spaces.cuda.scalar_code import Value
from tilewright.spaces.cuda.target import VECTOR_BYTES
from tilewright.spaces.derivation.products.reach import place_of
from tilewright.spaces.derivation.ragged.view import RaggedView
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.kernels.body import Body
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.language.tree import Expression, Read

NOWHERE_ELSE: Mapping[str, Index] = MappingProxyType({})


def width(place: Index, lane: str, kind: str, most: int) -> int:
    """Return the most elements up to ``most``, a power of two, that are moved at once where vectors
    along an axis ``lane`` begin."""
    widest = min(most, VECTOR_BYTES // dtype(kind).bytes)
    return gcd(widest, place.without([lane]).divisor)


@dataclass(frozen=True)
class Lane:
    """Neighbours along an ``axis``: a vector of ``count`` begins at the index ``at``, of which
    ``left`` are real ones, C text."""

    axis: str
    at: Index
    count: int
    left: str

    @property
    def is_whole(self) -> bool:
        """True if all of the vector is real."""
        return self.left == str(self.count)


@dataclass(frozen=True)
class Reads:
    """The reads of one scope of ``body``, at the variables ``axes``.

    ``pointers`` are those of operands and of what steps have left, ``known`` the results that
    registers hold. What scopes outside have loaded is ``found``, too.
    """

    view: RaggedView
    body: Body
    axes: Mapping[str, Index]
    pointers: Mapping[str, str]
    known: Mapping[str, str]
    names: Iterator[int]
    found: ChainMap[str, str] = field(default_factory=ChainMap)

    def inside(self, at: Mapping[str, Index] = NOWHERE_ELSE) -> Reads:
        """Return the reads of a scope within this one, ``at`` other places along axes."""
        return replace(self, axes={**self.axes, **at}, found=self.found.new_child())

    def knowing(self, known: Mapping[str, str]) -> Reads:
        """Return the same reads with further results that registers hold."""
        return replace(self, known={**self.known, **known})

    # -- expressions ---------------------------------------------------------------------------

    def number(self, node: Expression, lane: Lane | None = None, i: int = 0) -> str:
        """Return C text of an expression at a neighbour ``i`` of a lane, or without one."""
        return self.scope(lane, i).number(node)

    def scope(self, lane: Lane | None = None, i: int = 0) -> Scope:
        """Return the scope in which expressions are written, at a neighbour of a lane."""

        def read(node: Read) -> Value:
            if node.name in self.known:
                return Value(self.known[node.name])
            return Value(self._element(node, lane, i))

        def axis(name: str) -> Value:
            raise TypeError(f"the value of {name} does not count")

        return Scope("float", read, axis, magnitudes(self.view.program))

    # -- elements ------------------------------------------------------------------------------

    def load(self, node: Read, lane: Lane | None = None) -> None:
        """Load what a read has for all neighbours of a lane."""
        if node.name not in self.known:
            for i in range(lane.count if lane else 1):
                self._element(node, lane, i)

    def index(self, place: Index, at: Mapping[str, Index] = NOWHERE_ELSE) -> Index:
        """Return an index of C variables, ``at`` other places along axes; entries of tables are
        loaded into variables."""
        return place.at({**self.axes, **at}).loaded(self._entry)

    def kind(self, node: Read) -> str:
        """Return the dtype of what a read reads."""
        operand = self.view.program.operand.get(node.name)
        return operand.dtype if operand else "float32"

    def _element(self, node: Read, lane: Lane | None, i: int) -> str:
        place, pointer = self.view.places[node], self.pointers[node.name]
        step = place.step(lane.axis) if lane else 0
        if lane and step == 1:
            return f"tw::to_float({self._vector(node, place, pointer, lane)}[{i}])"
        at = {lane.axis: lane.at + i} if lane and step != 0 else NOWHERE_ELSE
        key = f"{pointer} + {self.index(place, at)}"
        if key not in self.found:
            value = f"tw::to_float(tw::load_global({key}))"
            if lane and at and not lane.is_whole:
                value = f"{i} < {lane.left} ? {value} : 0.0f"
            self.found[key] = self.body.let("const float", self._name("v"), value)
        return self.found[key]

    def _vector(self, node: Read, place: Index, pointer: str, lane: Lane) -> str:
        """Return the variable of a vector, which is loaded unless it was before."""
        where = f"{pointer} + {self.index(place, {lane.axis: lane.at})}"
        if where not in self.found:
            kind = self.kind(node)
            name = self.body.let(C_TYPES[kind], self._name("h"), count=lane.count)
            sizes = f"{lane.count}, {width(place, lane.axis, kind, lane.count)}"
            self.body.call(f"tw_take<{sizes}>", name, where, lane.left)
            self.found[where] = name
        return self.found[where]

    def _entry(self, entry: Entry) -> Index:
        operand = self.view.program.operand[entry.table]
        assert operand.drawn is not None
        place = place_of(self.view.program, entry).loaded(self._entry)
        key = f"{self.pointers[entry.table]} + {place}"
        if key not in self.found:
            value = f"tw_entry({key}, {operand.drawn.below})"
            self.found[key] = self.body.let("const int", self._name("t"), value)
        return variable(self.found[key], operand.drawn.below)

    def _name(self, prefix: str) -> str:
        return f"{prefix}{next(self.names)}"
