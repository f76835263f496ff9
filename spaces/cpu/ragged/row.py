"""The C of one row: its steps, each over all entries of the row, and the outputs.

Lanes lie along a kept axis if operands have adjacent elements along it: every entry then adds to
the same vectors, which stay in registers, and what it gathers is prefetched some entries ahead.
Otherwise lanes lie along the entries, or along an axis that a step reduces within an entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from types import MappingProxyType

from tilewright.spaces.algebra.atoms import Entry
from tilewright.spaces.algebra.index import Index, variable
from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cpu.abi import ARRAY_TYPES, LINE_BYTES
from tilewright.spaces.cpu.ragged.places import Places
from tilewright.spaces.cpu.ragged.prelude import PLACES
from tilewright.spaces.cpu.rows.reducing import BEFORE
from tilewright.spaces.cpu.rows.scopes import VectorScope
from tilewright.spaces.cpu.vectors import long_sums
from tilewright.spaces.cpu.vectors.reducers import EXTREMES, factors, identity, joined
from tilewright.spaces.derivation.ragged.view import RaggedView, RowOutput, Step
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.kernels.text import C
from tilewright.spaces.language.tree import Expression, Read

IN_ONE = 256
"""Entries that one accumulator takes before it is added to the sum of earlier blocks."""
MOST_OFFSET = 2**31 - 1
"""The largest offset that vectors of whole numbers hold."""
DOT_VECTORS = 4
"""Vectors of sums that are computed side by side within an entry."""


@dataclass(frozen=True)
class Tuning:
    """The decisions about a row's code: ``vectors`` at a time, ``unroll`` entries at a time, and
    prefetches what an entry gathers ``ahead`` entries ahead, and what lies in the order of entries
    itself ``stream`` entries ahead; with the ``lanes`` of vectors and the type of an ``element``.
    """

    vectors: int
    unroll: int
    ahead: int
    stream: int
    lanes: int
    element: str


@dataclass
class RowCode:
    """Writes the steps of the row ``r`` for the entries from ``begin`` to before ``end``.

    ``arrays`` maps operands and outputs to C variables, ``left`` the results of steps that are
    stored. If rows are ``split``, the partial result of a row goes to ``part`` unless that is NULL.
    """

    view: RaggedView
    tuning: Tuning
    arrays: Mapping[str, str]
    left: Mapping[str, str]
    split: bool
    _scopes: int = field(default=0)

    # -- names ---------------------------------------------------------------------------------

    @cached_property
    def _axes(self) -> Mapping[str, Index]:
        return {
            axis: variable(f"a{number}", extent)
            for number, (axis, extent) in enumerate(self.view.program.extents)
        }

    def axis(self, name: str) -> str:
        """Return the C variable of an axis."""
        return self._axes[name].text

    def _places(self, prefix: str = "t", **at: Index) -> Places:
        """Return places at the variables of all axes, or at other indices along the axes of
        ``at``."""
        return Places(self.view.program, {**self._axes, **at}, self.arrays, prefix)

    def _dtype(self, read: Read) -> str:
        operand = self.view.program.operand.get(read.name)
        return operand.dtype if operand else self.tuning.element

    def _pointer(self, read: Read) -> str:
        return self.left.get(read.name) or self.arrays[read.name]

    # -- the row -------------------------------------------------------------------------------

    def body(self) -> list[str]:
        """Return all steps, each followed by the outputs that are known then."""
        lines: list[str] = []
        for step in self.view.steps:
            lines += C.block(*self._step(step))
            for output in self._after(step):
                if not self.view.is_direct(output) and not step.finds_places:
                    lines += C.block(*self._output_from_memory(output))
        return lines

    def finish(self, state: str) -> list[str]:
        """Return the outputs of a row whose only result is in memory at ``state``."""
        step = self.view.splittable
        assert step is not None
        counts = [
            line for other in self.view.steps if other is not step for line in self._step(other)
        ]

        def block(count: int, most: int) -> list[str]:
            loads = []
            for number in range(count):
                place = f"{state} + {self._state_place(step, number)}"
                loads.append(f"vf s0_{number} = tw_load_{self.tuning.element}({place});")
            return [*loads, *self._direct(step, count, most)]

        return [*counts, *self._in_loops(step.outer, self._blocks(step.lane, block))]

    def joined_parts(self, state: str, part: str) -> list[str]:
        """Return the lines that join two parts of a row, and store the result in the first one."""
        step, element = self.view.splittable, self.tuning.element
        assert step is not None
        both = (f"tw_load_{element}({place} + i)" for place in (state, part))
        value = joined(step.reducer or "", *both)
        size, lanes = state_size(self.view, step, self.tuning.lanes), self.tuning.lanes
        return C.loop("i", size, f"tw_store_{element}({state} + i, {value});", step=lanes)

    def _state_place(self, step: Step, vector: int) -> str:
        """Return the offset of a vector of a row's partial result, at the variables of axes."""
        extents = self.view.program.extent
        place, size = self._axes[step.lane], round_up(extents[step.lane], self.tuning.lanes)
        for axis in reversed(step.outer):
            place = place + self._axes[axis] * size
            size *= extents[axis]
        return (place + vector * self.tuning.lanes).text

    def _after(self, step: Step) -> list[RowOutput]:
        return [output for output in self.view.outputs if output.after == step.name]

    # -- loops ---------------------------------------------------------------------------------

    def _in_loops(self, axes: Sequence[str], inner: Sequence[str]) -> list[str]:
        lines = list(inner)
        for axis in reversed(axes):
            lines = C.loop(self.axis(axis), self.view.program.extent[axis], lines)
        return lines

    def _blocks(self, axis: str, block: Callable[[int, int], list[str]]) -> list[str]:
        """Return loops over blocks of vectors along an axis.

        ``block`` takes the number of vectors, and the number of lanes that count in the last one.
        """
        lanes, extent, name = self.tuning.lanes, self.view.program.extent[axis], self.axis(axis)
        whole = self.tuning.vectors * lanes
        count, rest = divmod(extent, whole)
        lines = []
        if count:
            lines += C.loop(name, count * whole, block(self.tuning.vectors, lanes), step=whole)
        if rest:
            vectors = ceil_div(rest, lanes)
            inner = block(vectors, rest - (vectors - 1) * lanes)
            lines += C.block(f"const long {name} = {count * whole};", *inner)
        return lines

    # -- steps ---------------------------------------------------------------------------------

    def _step(self, step: Step) -> list[str]:
        if step.counts is not None:
            number = f"({ARRAY_TYPES[self.tuning.element]})(end - begin)"
            value = f"TW_NUMBER({step.counts!r}) * tw_set({number})"
            return self._leave(step, value, 1) if step.name in self.view.kept_steps else []
        if step.finds_places:
            return self._best(step)
        if step.lane == self.view.range.entry:
            inner = self._along_entries(step)
            return self._in_loops(step.outer, inner)
        if step.along:
            return self._in_loops(step.kept, self._within_entries(step))
        return self._in_loops(step.outer, self._blocks(step.lane, self._lane_block(step)))

    def _leave(
        self, step: Step, value: str, used: int | str | None = None, vector: int = 0
    ) -> list[str]:
        """Return the line that stores a vector of a step's values at the variables of axes; only
        the lanes that are ``used``, if that is given."""
        own = self.view.left_place(step).at(self._axes) + vector * self.tuning.lanes
        where = f"{self.left[step.name]} + {own.text}"
        element = self.tuning.element
        if used is None:
            return [f"tw_store_{element}({where}, {value});"]
        return [f"tw_store_most_{element}({where}, {value}, {used});"]

    # -- lanes along a kept axis -----------------------------------------------------------------

    def _lane_block(self, step: Step) -> Callable[[int, int], list[str]]:
        def block(vectors: int, most: int) -> list[str]:
            groups = range(self.tuning.unroll)
            states = [f"s{g}_{v}" for g in groups for v in range(vectors)]
            lines = [f"vf {state} = {identity(step.reducer or '')};" for state in states]

            def turn(group: int) -> list[str]:
                return self._lane_turn(step, group, vectors, most)

            lines += self._entry_loops(step, states, turn)
            for group in groups[1:]:
                for v in range(vectors):
                    both = joined(step.reducer or "", f"s0_{v}", f"s{group}_{v}")
                    lines.append(f"s0_{v} = {both};")
            if self.split and step is self.view.splittable:
                stores = [
                    f"tw_store_{self.tuning.element}(part + {self._state_place(step, v)}, s0_{v});"
                    for v in range(vectors)
                ]
                direct = self._direct(step, vectors, most)
                return [*lines, *C.when("part", stores, direct)]
            return [*lines, *self._direct(step, vectors, most)]

        return block

    def _entry_loops(
        self, step: Step, states: Sequence[str], turn: Callable[[int], list[str]]
    ) -> list[str]:
        """Return the loops over a row's entries, several at a time, in blocks if sums may be
        long."""
        unroll, name = self.tuning.unroll, self.axis(self.view.range.entry)
        several = [line for g in range(unroll) for line in self._at(name, f"e + {g}", turn(g))]
        loops = ["for (; e < stop; e++) {", *indented(self._at(name, "e", turn(0))), "}"]
        if unroll > 1:
            head = f"for (; e + {unroll} <= stop; e += {unroll}) {{"
            loops = [head, *indented([*self._streamed(step), *several]), "}", *loops]
        return self._in_parts(step, states, loops, IN_ONE)

    def _in_parts(
        self, step: Step, states: Sequence[str], loops: Sequence[str], most: int
    ) -> list[str]:
        """Return ``loops`` from ``e`` to ``stop`` for all entries of a row; long sums are added up
        in blocks of ``most`` entries."""
        if step.reducer != "sum" or self.view.entries <= most:
            return C.block("long e = begin;", "const long stop = end;", *loops)
        total = [f"{state} = {long_sums.parts(state)[0]};" for state in states]
        return [
            *long_sums.begun(states),
            "for (long e = begin; e < end;) {",
            f"  const long stop = tw_least(end, e + {most});",
            *indented(loops),
            *indented(C.when(f"end - begin > {most}", long_sums.ended(states))),
            "}",
            *C.when(f"end - begin > {most}", total),
        ]

    def _at(self, name: str, value: str, lines: Sequence[str]) -> list[str]:
        return C.block(f"const long {name} = {value};", *lines)

    def _lane_turn(self, step: Step, group: int, vectors: int, most: int) -> list[str]:
        lines = self._prefetched(step, step.lane, (vectors - 1) * self.tuning.lanes + most)
        inner = self._accumulated(step, [f"s{group}_{v}" for v in range(vectors)], most)
        return [*lines, *self._in_loops(step.inner, inner)]

    def _accumulated(self, step: Step, states: Sequence[str], most: int) -> list[str]:
        """Return the lines that add the terms of neighbouring vectors to their states."""
        places = self._places()
        terms: list[str] = []
        loaded: dict[str, str] = {}
        for number, state in enumerate(states):
            used = most if number == len(states) - 1 and most < self.tuning.lanes else None
            scope = self._scope(step.lane, number, used, places, terms, loaded)
            terms.append(f"{state} = {self._joined(step, state, scope)};")
        return [*places.lines, *terms]

    def _joined(self, step: Step, state: str, scope: VectorScope, used: str | None = None) -> str:
        found = factors(step.reducer or "", step.body)
        if found and used is None:
            left, right = map(scope.text, found)
            return f"tw_fma({left}, {right}, {state})"
        value = scope.text(step.body)
        if used is not None:
            value = f"tw_select(tw_first({used}), {value}, {identity(step.reducer or '')})"
        return joined(step.reducer or "", state, value)

    def _prefetched(self, step: Step, lane: str, width: int) -> list[str]:
        """Return the prefetches of the lines that a later entry gathers."""
        entry, ahead = self.view.range.entry, self.tuning.ahead
        if not ahead:
            return []
        further = self._axes[entry] + ahead
        places = self._places("f", **{entry: further, **dict.fromkeys(step.inner, Index())})
        asked = []
        for read in dict.fromkeys(step.body.value_reads):
            place = self.view.places[read]
            gathered = any(entry in index.names for e in place.entries for index in e.indices)
            if gathered and place.step(lane) == 1:
                where = f"{self._pointer(read)} + {places.index(place).text}"
                size = dtype(self._dtype(read)).bytes
                apart = LINE_BYTES // size
                for line in range(ceil_div(width, apart)):
                    asked.append(f"__builtin_prefetch({where} + {line * apart});")
        if not asked:
            return []
        test = f"{self.axis(entry)} + {ahead} < {self.view.entries}"
        return C.when(test, [*places.lines, *asked])

    def _streamed(self, step: Step) -> list[str]:
        """Return the prefetches of what later entries have in their own order: elements, and
        indices."""
        if not self.tuning.stream:
            return []
        program, found = self.view.program, dict[str, str]()
        for read in step.body.value_reads:
            place = self.view.places[read]
            if place == entry_of(self.view):
                found[self._pointer(read)] = self._dtype(read)
            for table in (e.table for e in place.entries if e.indices == (entry_of(self.view),)):
                found[self.arrays[table]] = program.operand[table].dtype
        ahead = (
            f"(const char *)({pointer} + e) + {self.tuning.stream * dtype(kind).bytes}"
            for pointer, kind in found.items()
        )
        return [f"__builtin_prefetch({place});" for place in ahead]

    def _direct(self, step: Step, vectors: int, most: int) -> list[str]:
        """Return the lines that use vectors of results at once: stores for later steps, and
        outputs."""
        lines: list[str] = []
        places = self._places("p")
        loaded: dict[str, str] = {}
        for number in range(vectors):
            used = most if number == vectors - 1 and most < self.tuning.lanes else None
            state = f"s0_{number}"
            if step.name in self.view.kept_steps:
                lines += self._leave(step, state, used or self.tuning.lanes, number)
            for output in self._after(step):
                if self.view.is_direct(output):
                    own = {step.name: state}
                    scope = self._scope(step.lane, number, used, places, lines, loaded, own)
                    lines.append(self._stored(output, scope.text(output.value), number, used))
        return [*places.lines, *lines]

    def _stored(self, output: RowOutput, value: str, vector: int, used: int | None) -> str:
        kind, step = output.output.dtype, output.place.step(output.lane) if output.lane else 1
        assert step is not None
        place = self._places().index(output.place) + vector * self.tuning.lanes * step
        where = f"{self.arrays[output.output.name]} + {place.text}"
        if step != 1:
            return f"tw_spread_{kind}({where}, {step}, {value}, {used or 'TW_LANES'});"
        if used is None:
            return f"tw_store_{kind}({where}, {value});"
        return f"tw_store_most_{kind}({where}, {value}, {used});"

    def _output_from_memory(self, output: RowOutput) -> list[str]:
        """Return the lines of an output of results that are in memory."""
        if output.along:
            return self._in_loops(output.axes, self._of_entries(output))
        if output.lane is None:
            lines: list[str] = []
            places = self._places("p")
            scope = self._scope(self.view.range.entry, 0, 1, places, lines, {}, alone=True)
            stored = self._stored(output, scope.text(output.value), 0, 1)
            return [*places.lines, *lines, stored]
        lane = output.lane

        def block(vectors: int, most: int) -> list[str]:
            lines: list[str] = []
            places = self._places("p")
            loaded: dict[str, str] = {}
            for number in range(vectors):
                used = most if number == vectors - 1 and most < self.tuning.lanes else None
                scope = self._scope(lane, number, used, places, lines, loaded)
                lines.append(self._stored(output, scope.text(output.value), number, used))
            return [*places.lines, *lines]

        return self._in_loops(output.axes[:-1], self._blocks(lane, block))

    def _of_entries(self, output: RowOutput) -> list[str]:
        """Return the loop of an output that has an element for each entry."""
        name, entry = self.axis(self.view.range.entry), self.view.range.entry
        places, terms = self._places("p"), list[str]()
        scope = self._scope(entry, 0, "left", places, terms, {})
        kind, step = output.output.dtype, output.place.step(entry)
        where = f"{self.arrays[output.output.name]} + {self._places().index(output.place).text}"
        value = scope.text(output.value)
        store = f"tw_store_most_{kind}({where}, {value}, left);"
        if step != 1:
            store = f"tw_spread_{kind}({where}, {step}, {value}, left);"
        turn = ["const long left = end - e;", *places.lines, *terms, store]
        step = self.tuning.lanes
        return C.loop("e", "end", self._at(name, "e", turn), first="begin", step=step)

    # -- lanes along entries -----------------------------------------------------------------------

    def _along_entries(self, step: Step) -> list[str]:
        """Return a step with an entry in each lane, which stores a value of each or reduces all."""
        name, lanes = self.axis(self.view.range.entry), self.tuning.lanes

        def turn(used: str | None) -> list[str]:
            places, terms = self._places(), list[str]()
            scope = self._scope(self.view.range.entry, 0, used, places, terms, {})
            if step.reducer is None:
                value = scope.text(step.body)
                return [*places.lines, *terms, *self._leave(step, value, used)]
            value = self._joined(step, "s", scope, used)
            return [*places.lines, *terms, f"s = {value};"]

        loops = [
            f"for (; e + {lanes} <= stop; e += {lanes}) {{",
            *indented(self._streamed(step)),
            *indented(self._in_loops(step.inner, self._at(name, "e", turn(None)))),
            "}",
            "if (e < stop) {",
            "  const long left = stop - e;",
            *indented(self._in_loops(step.inner, self._at(name, "e", turn("left")))),
            "  e = stop;",
            "}",
        ]
        if step.reducer is None:
            return ["long e = begin;", "const long stop = end;", *loops]
        ends: list[str] = []
        places = self._places("p")
        for output in filter(self.view.is_direct, self._after(step)):
            known = {step.name: "whole"}
            scope = self._scope(self.view.range.entry, 0, 1, places, ends, {}, known, alone=True)
            ends.append(self._stored(output, scope.text(output.value), 0, 1))
        if step.name in self.view.kept_steps:
            ends += self._leave(step, "whole", 1)
        return [
            f"vf s = {identity(step.reducer)};",
            *self._in_parts(step, ["s"], loops, IN_ONE * lanes),
            f"const vf whole = tw_set(tw_across_{step.reducer}(s));",
            *places.lines,
            *ends,
        ]

    # -- places ------------------------------------------------------------------------------------

    def _best(self, step: Step) -> list[str]:
        """Return a step that finds the first best entry of each point; it writes its output
        itself."""
        if step.lane == self.view.range.entry:
            return self._in_loops(step.kept, self._best_of_lanes(step))
        return self._in_loops(step.outer, self._blocks(step.lane, self._best_block(step)))

    def _best_block(self, step: Step) -> Callable[[int, int], list[str]]:
        def block(vectors: int, most: int) -> list[str]:
            lines, ends = list[str](), list[str]()
            for v in range(vectors):
                lines.append(f"vf s0_{v} = {identity(step.reducer or '')};")
                lines.append(f"vi p0_{v} = tw_ramp(first) - tw_ramp(0);")
                ends += self._stored_places(step, v, most if v == vectors - 1 else None)
            places, terms = self._places(), list[str]()
            loaded: dict[str, str] = {}
            for v in range(vectors):
                short = v == vectors - 1 and most < self.tuning.lanes
                scope = self._scope(step.lane, v, most if short else None, places, terms, loaded)
                terms += self._better(
                    step, scope.text(step.body), f"0_{v}", "tw_ramp(e) - tw_ramp(0)"
                )
            inner = [*self._prefetched(step, step.lane, vectors * self.tuning.lanes)]
            inner += [*places.lines, *terms]
            entry = self._at(self.axis(self.view.range.entry), "e", inner)
            loop = C.loop("e", "end", entry, first="begin")
            return ["const long first = begin < end ? begin : 0;", *lines, *loop, *ends]

        return block

    def _best_of_lanes(self, step: Step) -> list[str]:
        lanes, name = self.tuning.lanes, self.axis(self.view.range.entry)
        places, terms = self._places(), list[str]()
        scope = self._scope(self.view.range.entry, 0, "left", places, terms, {})
        value = (
            f"tw_select(tw_first(left), {scope.text(step.body)}, {identity(step.reducer or '')})"
        )
        terms += self._better(step, value, "", "tw_ramp(e)")
        turn = ["const long left = tw_least(end - e, TW_LANES);", *places.lines, *terms]
        extreme = EXTREMES[step.reducer or ""]
        (output,) = self._after(step)
        place = self._places().index(output.place)
        where = f"{self.arrays[output.output.name]}[{place.text}]"
        return [
            f"vf s = {identity(step.reducer or '')};",
            "vi p = tw_ramp(begin);",
            *C.loop("e", "end", self._at(name, "e", turn), first="begin", step=lanes),
            f"{where} = begin < end ? tw_where(s, tw_across_{extreme}(s), p) : 0;",
        ]

    def _better(self, step: Step, value: str, state: str, place: str) -> list[str]:
        """Return the lines that keep a value and its place if it is better than the best one so
        far."""
        before = BEFORE[step.reducer or ""]
        self._scopes += 1
        now = f"n{self._scopes}"
        return [
            f"const vf {now} = {value};",
            f"const vi {now}_better = {before}({now}, s{state});",
            f"s{state} = tw_select({now}_better, {now}, s{state});",
            f"p{state} = tw_pick({now}_better, {place}, p{state});",
        ]

    def _stored_places(self, step: Step, vector: int, used: int | None) -> list[str]:
        (output,) = self._after(step)
        assert output.lane is not None
        apart = output.place.step(output.lane) or 0
        place = self._places().index(output.place) + vector * self.tuning.lanes * apart
        where = f"{self.arrays[output.output.name]} + {place.text}"
        store = f"({where})[{apart} * l] = p0_{vector}[l];"
        return C.loop("l", used or self.tuning.lanes, store)

    # -- lanes within an entry ---------------------------------------------------------------------

    def _within_entries(self, step: Step) -> list[str]:
        """Return a step that reduces within each entry."""
        extent, lanes = self.view.program.extent[step.lane], self.tuning.lanes
        vectors = min(DOT_VECTORS, max(1, extent // lanes))
        whole = vectors * lanes
        count, rest = divmod(extent, whole)
        name, states = self.axis(step.lane), [f"s{v}" for v in range(vectors)]
        lines = [f"vf {state} = {identity(step.reducer or '')};" for state in states]
        inner: list[str] = []
        if count:
            head = f"for (long {name} = 0; {name} < {count * whole}; {name} += {whole}) {{"
            inner += [head, *indented(self._dot_terms(step, states, lanes)), "}"]
        if rest:
            parts = ceil_div(rest, lanes)
            last = rest - (parts - 1) * lanes
            body = self._dot_terms(step, states[:parts], last)
            inner += ["{", f"  const long {name} = {count * whole};", *indented(body), "}"]
        lines += self._in_loops(step.inner[:-1], inner)
        total = states[0]
        for state in states[1:]:
            total = joined(step.reducer or "", total, state)
        value = f"tw_set(tw_across_{step.reducer}({total}))"
        entry = self.axis(self.view.range.entry)
        return [
            f"for (long {entry} = begin; {entry} < end; {entry}++) {{",
            *indented(
                [*self._prefetched(step, step.lane, extent), *lines, *self._leave(step, value, 1)]
            ),
            "}",
        ]

    def _dot_terms(self, step: Step, states: Sequence[str], most: int) -> list[str]:
        places, terms = self._places(), list[str]()
        loaded: dict[str, str] = {}
        for number, state in enumerate(states):
            is_short = number == len(states) - 1 and most < self.tuning.lanes
            used = str(most) if is_short else None
            scope = self._scope(step.lane, number, used, places, terms, loaded)
            terms.append(f"{state} = {self._joined(step, state, scope, used)};")
        return [*places.lines, *terms]

    # -- reads ---------------------------------------------------------------------------------

    def _scope(
        self,
        lane: str,
        vector: int,
        used: int | str | None,
        places: Places,
        lines: list[str],
        loaded: dict[str, str],
        known: Mapping[str, str] = MappingProxyType({}),
        alone: bool = False,
    ) -> VectorScope:
        """Return a scope for expressions of one vector, ``used`` lanes of which count.

        ``known`` maps steps to the registers of their results. If it is one value ``alone``, all
        lanes are the same.
        """

        def leaf(node: Expression) -> str | None:
            if not isinstance(node, Read):
                return None
            if node.name in known:
                return known[node.name]
            text = self._load(node, lane, vector, used, places, lines, alone)
            if text not in loaded:
                loaded[text] = f"v{self._scopes}_{len(loaded)}"
                lines.append(f"const vf {loaded[text]} = {text};")
            return loaded[text]

        self._scopes += 1
        return VectorScope(f"y{self._scopes}_", leaf, lines)

    def _load(
        self,
        read: Read,
        lane: str,
        vector: int,
        used: int | str | None,
        places: Places,
        lines: list[str],
        alone: bool,
    ) -> str:
        place, kind = self.view.places[read], self._dtype(read)
        step = 0 if alone else place.step(lane)
        if step is None:
            return self._gathered(read, used, lines)
        index = places.index(place) + vector * self.tuning.lanes * step
        where = f"{self._pointer(read)} + {index.text}"
        if step == 0:
            return f"tw_splat_{kind}({where})"
        if step != 1:
            return f"tw_gather_{kind}({where}, {step}, {used or 'TW_LANES'})"
        if used == self.tuning.lanes // 2 and kind == self.tuning.element == "float32":
            return f"tw_load_half_float32({where})"
        return f"tw_load_most_{kind}({where}, {used})" if used else f"tw_load_{kind}({where})"

    def _gathered(self, read: Read, used: int | str | None, lines: list[str]) -> str:
        """Return a vector of the elements that tables choose for each entry. Lanes past the end
        hold the element of the last entry of all."""
        entry, kind = self.view.range.entry, self._dtype(read)
        if found := self._looked_up(read, used, lines):
            return found
        self._scopes += 1
        name, last = f"g{self._scopes}", self.view.entries - 1
        at, real = self.axis(entry), ARRAY_TYPES[self.tuning.element]
        for lane in range(self.tuning.lanes):
            further = self._axes[entry] + lane
            if used is not None:
                further = variable(f"tw_least({at} + {lane}, {last})", self.view.entries)
            places = self._places(f"{name}_{lane}_", **{entry: further})
            where = places.index(self.view.places[read]).text
            value = f"tw_splat_{kind}({self._pointer(read)} + {where})[0]"
            lines += [*places.lines, f"const {real} {name}_{lane} = {value};"]
        return f"(vf){{{', '.join(f'{name}_{lane}' for lane in range(self.tuning.lanes))}}}"

    def _looked_up(self, read: Read, used: int | str | None, lines: list[str]) -> str | None:
        """Return a vector of what the entries of one table choose of an array of float32, by an
        instruction that gathers; None if they choose otherwise."""
        entry, place = self.view.range.entry, self.view.places[read]
        chosen = place.part([entry])
        match chosen.terms:
            case ((Entry(table, (at,)), apart),) if at == entry_of(self.view):
                operand = self.view.program.operand[table]
            case _:
                return None
        assert operand.drawn is not None
        below = operand.drawn.below
        is_float = self._dtype(read) == self.tuning.element == "float32"
        if not is_float or operand.dtype not in PLACES or below * apart > MOST_OFFSET:
            return None
        self._scopes += 1
        name, where = f"g{self._scopes}", f"{self.arrays[table]} + {self.axis(entry)}"
        rest = self._places(f"{name}_")
        start = rest.index(place - chosen).text
        places = f"tw_places_{operand.dtype}({where})"
        if used is not None:
            places = f"tw_first_places_{operand.dtype}({where}, {used})"
        lines += [*rest.lines, f"const vi {name} = tw_entries({places}, {below}) * {apart};"]
        return f"tw_lookup_float32({self._pointer(read)} + {start}, {name})"


def entry_of(view: RaggedView) -> Index:
    """Return the index of an entry by itself."""
    return variable(view.range.entry, view.entries)


def state_size(view: RaggedView, step: Step, lanes: int) -> int:
    """Return the elements of the partial result of a row, whole vectors along its lanes."""
    extents = view.program.extent
    return prod(extents[axis] for axis in step.outer) * round_up(extents[step.lane], lanes)
