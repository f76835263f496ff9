"""The C of the walk along a row of a scan, whose lanes are columns, or the walk along as many rows
as there are lanes.

A block of columns is reduced by itself, and the result of all blocks before it, the carry, is
joined to each of its states: rounding errors of sums do not grow with the row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index, variable
from tilewright.spaces.cpu.rows.access import RowAccess
from tilewright.spaces.cpu.rows.columns import Vector
from tilewright.spaces.cpu.rows.scopes import VectorScope
from tilewright.spaces.cpu.scan.prelude import BACKWARDS, FORWARDS
from tilewright.spaces.cpu.vectors.long_sums import BLOCK
from tilewright.spaces.cpu.vectors.reducers import identity, joined, taken
from tilewright.spaces.derivation.chains.chain_reduction import ChainReduction
from tilewright.spaces.derivation.rows.addresses import RowAddress
from tilewright.spaces.derivation.scans.view import Scan
from tilewright.spaces.derivation.scopes import Scope
from tilewright.spaces.kernels.text import C
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.language.tree import Expression, Read


@dataclass(frozen=True)
class ScanRow:
    """Writes walks over the columns from ``begin`` to before ``end``, which are C variables.

    ``access`` makes the accesses of a row, to whose lines pointers are added. Walks end with sums
    alone unless they write ``outputs``, past the caches if ``streaming``.
    """

    view: Scan
    access: Callable[[Sequence[Index], list[str]], RowAccess]
    lanes: int
    vectors: int
    streaming: bool

    def along(self, at: Sequence[Index], outputs: bool) -> list[str]:
        """Return the lines of a walk along the row ``at``: blocks of ``vectors``, then single
        vectors. Sums so far are in ``c0`` and so on."""
        lines: list[str] = []
        access = self.access(at, lines)
        row = self._row_scope(access, lines)
        width, extent = self.vectors * self.lanes, self.view.column_count

        def block(count: int, left: str | None) -> list[str]:
            starts = [variable("j") + u * self.lanes for u in range(count)]
            vectors = [Vector((start,), left) for start in starts]
            return self._block(access, row, vectors, outputs)

        if outputs and (place := self._unaligned):
            ahead = access.ahead(place, Vector((variable("begin"),), None), self.lanes)
            lines += [
                f"const long head = tw_least(end - begin, {ahead}), first = begin + head;",
                f"const long whole = first + (end - first) / {width} * {width};",
                f"const long full = whole + (end - whole) / {self.lanes} * {self.lanes};",
            ]
            loops = [
                C.when("head > 0", ["const long j = begin;", *block(1, "head")]),
                self._turns("first", "whole", width, block(self.vectors, None)),
                self._turns("whole", "full", self.lanes, block(1, None)),
                C.when("full < end", ["const long j = full;", *block(1, "end - j")]),
            ]
        else:
            loops = [self._turns("begin", "whole", width, block(self.vectors, None))]
            if extent % width:
                left = f"{extent} - j" if extent % self.lanes else None
                loops.append(self._turns("whole", "end", self.lanes, block(1, left)))
            lines.append(f"const long whole = begin + (end - begin) / {width} * {width};")
        in_order = loops[::-1] if self.view.backwards else loops
        return [*lines, *(line for loop in in_order for line in loop)]

    def across(self, outer: Sequence[Index], first: str, outputs: bool) -> list[str]:
        """Return the lines of a walk along the rows of ``count`` vectors from row ``first`` on, a C
        variable. Sums so far are in the elements of ``c0`` and so on."""
        lines: list[str] = []
        rows = self.view.rows[-1].extent
        left = f"{rows} - r" if rows % self.lanes else None
        access = self.access((*outer, variable("r")), lines)
        scope = VectorScope("x", lambda node: None, lines, self._row_scope(access, lines, left))
        vector, known = Vector((variable("i"),), left), dict[str, str]()
        scope.leaf = self._leaf(access, vector, known)
        for k, r in enumerate(self.view.running):
            add = taken(r.reducer, f"a{k}[v]", scope.text(r.element))
            state = f"const vf s{k} = {joined(r.reducer, f'c{k}[v]', f'a{k}[v]')};"
            lines += [state, add] if r.name in self.view.exclusive else [add, state]
            known[r.name] = f"s{k}"
        declared: list[str] = []
        moves: list[str] = []
        start = self.access((*outer, variable(first)), declared)
        count = f"tw_least({rows} - {first}, {self.lanes} * count)"
        for n, output in enumerate(self.view.outputs) if outputs else ():
            place, value = output.place, scope.text(output.value)
            if not self._lies_apart(place):
                lines.append(access.store(place, value, vector, self.streaming))
                continue
            declared.append(access.line(place, f"line{n}", self.vectors * self.lanes))
            lines.append(access.keep(place, f"line{n} + {self.lanes} * v", value))
            moves += start.stream(place, Vector((variable("i"),), None), f"line{n}", count)
        each = C.loop("v", "count", [f"const long r = {first} + {self.lanes} * v;", *lines])
        carries = [carried(r, f"{k}[v]", f"a{k}[v]") for k, r in enumerate(self.view.running)]
        cleared = [f"a{k}[v] = {identity(r.reducer)};" for k, r in enumerate(self.view.running)]
        columns = C.loop(
            "t", f"tw_least(end, b + {BLOCK})", [self._column, *each, *moves], first="b"
        )
        blocks = [*C.loop("v", "count", cleared), *columns, *C.loop("v", "count", carries)]
        return [*declared, *C.loop("b", "end", blocks, first="begin", step=BLOCK)]

    def _lies_apart(self, place: RowAddress) -> bool:
        """Tell whether an output is streamed whose vectors of several rows may begin anywhere: they
        are kept near the core until all rows of a column are there."""
        *others, lane = place.rows
        apart = any(step % self.lanes for step in (*others, *place.columns))
        return self.streaming and lane == 1 and apart

    @property
    def _column(self) -> str:
        return f"const long i = {'begin + end - 1 - t' if self.view.backwards else 't'};"

    @property
    def _unaligned(self) -> RowAddress | None:
        """The place of an output that is streamed, and whose rows may begin anywhere within a
        vector: a part of one comes before whole ones, which are aligned."""
        places = [output.place for output in self.view.outputs]
        apart = (p for p in places if any(step % self.lanes for step in p.rows))
        return next(apart, None) if self.streaming else None

    def _turns(self, first: str, end: str, step: int, lines: Sequence[str]) -> list[str]:
        """Return a loop over ``j`` from ``first`` to before ``end``, or backwards over the same."""
        if not self.view.backwards:
            return C.loop("j", end, lines, first=first, step=step)
        last = f"({end} - {first} - 1) / {step} * {step}"
        start = f"const long j = {first} + {last} - (t - {first});"
        return C.loop("t", end, [start, *lines], first=first, step=step)

    def _block(
        self, access: RowAccess, row: Scope, vectors: Sequence[Vector], outputs: bool
    ) -> list[str]:
        """Return the lines of some vectors whose sums are carried on at once."""
        lines: list[str] = []
        states: list[dict[str, str]] = [{} for _ in vectors]
        scopes = [
            VectorScope(f"x{u}_", self._leaf(access, vector, states[u]), lines, row)
            for u, vector in enumerate(vectors)
        ]
        order = range(len(vectors))[:: -1 if self.view.backwards else 1]
        for k, r in enumerate(self.view.running):
            before = ""
            for u in order:
                lines += self._summed(k, u, r, before, self._term(scopes[u], r, vectors[u]))
                states[u][r.name], before = f"s{k}_{u}", f"a{k}_{u}"
            lines.append(carried(r, f"{k}", self._final(before)))
        for scope, vector in zip(scopes, vectors, strict=True) if outputs else ():
            lines += self._stores(access, scope, vector)
        return lines

    def _summed(self, k: int, u: int, r: ChainReduction, before: str, term: str) -> list[str]:
        """Return the lines that sum up a vector, behind the one whose sums are ``before`` in the
        same block."""
        own, running = f"a{k}_{u}", f"tw_running_{r.reducer}{self._way}({term})"
        sums = joined(r.reducer, running, self._final(before)) if before else running
        behind = f"tw_behind{self._way}({before or identity(r.reducer)}, {own})"
        state = behind if r.name in self.view.exclusive else own
        return [
            f"const vf {own} = {sums};",
            f"const vf s{k}_{u} = {joined(r.reducer, f'c{k}', state)};",
        ]

    @property
    def _way(self) -> str:
        return BACKWARDS if self.view.backwards else FORWARDS

    def _final(self, sums: str) -> str:
        return f"tw_final{self._way}({sums})"

    def _term(self, scope: Scope, r: ChainReduction, vector: Vector) -> str:
        """Return the terms of a vector; those of nothing where lanes past its own are not the last
        that count."""
        term = scope.text(r.element)
        if vector.left and (self.view.backwards or vector.left == "head"):
            return f"tw_select(tw_first({vector.left}), {term}, {identity(r.reducer)})"
        return term

    def _stores(self, access: RowAccess, scope: Scope, vector: Vector) -> list[str]:
        return [
            access.store(output.place, scope.text(output.value), vector, self.streaming)
            for output in self.view.outputs
        ]

    def _row_scope(self, access: RowAccess, lines: list[str], left: str | None = None) -> Scope:
        known = magnitudes(self.view.program)
        return VectorScope("g", lambda n: access.read_once(n, 0, left), lines, magnitudes=known)

    def _leaf(
        self, access: RowAccess, vector: Vector, states: Mapping[str, str]
    ) -> Callable[[Expression], str | None]:
        """Return what a vector knows: what it reads, and the sums at its elements."""

        def leaf(node: Expression) -> str | None:
            if isinstance(node, Read) and node.name in self.view.names:
                return states[node.name]
            return access.read(node, vector)

        return leaf


def carried(r: ChainReduction, place: str, block: str) -> str:
    """Return the statement that takes a block into the state ``c`` of all before; sums have an
    excess ``e`` beside it."""
    if r.reducer == "sum":
        return f"tw_carry(&c{place}, &e{place}, {block});"
    return taken(r.reducer, f"c{place}", block)


def state_names(r: ChainReduction) -> str:
    """Return the first letters of the variables of a state of all before."""
    return "ce" if r.reducer == "sum" else "c"
