"""The CUDA C++ of one step: the loops of all groups of stages, in order.

An expression is computed where what it is made of is known: once for a step, for each column of a
thread, for each of its points, or for each column at each point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import gcd

from tilewright.spaces.algebra.index import Index, index, variable
from tilewright.spaces.cuda.abi import C_TYPES, FLOATS
from tilewright.spaces.cuda.chains.scopes import ThreadScope
from tilewright.spaces.cuda.reducers import joined, taken
from tilewright.spaces.cuda.scalar_code import literal
from tilewright.spaces.cuda.stepped.sizes import REAL, StepSizes
from tilewright.spaces.cuda.stepped.sources import Kind, Source
from tilewright.spaces.cuda.stepped.tile import Points, axes_of, inner_indices, is_crossing
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.derivation.rows.addresses import Steps
from tilewright.spaces.derivation.scopes import Integer, Scope
from tilewright.spaces.derivation.stepped.view import Group, SteppedView
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.language.affine import Affine
from tilewright.spaces.language.functions import REDUCERS
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.language.program import Output, Stage
from tilewright.spaces.language.tree import AxisValue, Binary, Expression, Read

TURN, POINT, PART, STEP, NUMBER = "i", "point", "part", "t", "number"
"""C variables: the number of a point among those of a thread, its number among all, the place of
the thread among those that share points, the step, and its number in the order of steps."""
SIZES = {C_TYPES[name]: dtype(name).bytes for name in FLOATS}
"""The bytes of C types of elements."""
TERMS = 4
"""The most terms of the sums of points that are written one after the other."""


class StepScope(ThreadScope):
    """A scope whose powers are those of the library, and whose products are added in one
    operation."""

    def value(self, node: Expression) -> str:
        """Return C text of an expression."""
        match node:
            case Binary("+", addend, Binary("*", left, right) as term) if self._is_fused(term):
                return f"tw::fused({self.text(left)}, {self.text(right)}, {self.text(addend)})"
            case Binary("+", Binary("*", left, right) as term, addend) if self._is_fused(term):
                return f"tw::fused({self.text(left)}, {self.text(right)}, {self.text(addend)})"
        return Scope.value(self, node)

    def _is_fused(self, term: Expression) -> bool:
        known = self._magnitudes
        whole = known is not None and known.is_integer(term)
        return self.holds(term) and term not in self.names and not whole


@dataclass
class StepWriter:
    """Writes steps of the rows whose indices are C variables ``at``, by axis.

    ``pointers`` maps outputs to C pointers to their first elements in a row, sources have their
    own; ``places`` maps those that are staged to C text of where their step is in shared memory,
    and ``left`` stages whose elements others read to that of where these are. Steps are numbered
    by the C variable ``number``. The ``view`` has some stages of that of the sizes; ``ahead`` maps
    those that are computed before the steps to where their step is in shared memory. ``part`` is
    the place of a thread among those that share points; names of arrays begin with ``prefix``.
    """

    view: SteppedView
    sizes: StepSizes
    at: Mapping[str, Index]
    pointers: Mapping[str, str]
    places: Mapping[Source, str]
    left: Mapping[str, str]
    ahead: Mapping[str, str]
    part: str = PART
    prefix: str = ""
    lines: list[str] = field(default_factory=list)
    arrays: dict[tuple[Read, tuple[str, ...]], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.vector = int(self.sizes.vector)

    # -- before the first step ---------------------------------------------------------------------

    def prepared(self) -> list[str]:
        """Return the lines that set the state, and load what is alike at all steps."""
        lines: list[str] = []
        for name, value in self.view.first.items():
            stage = self.view.stage[name]
            place = self.state(stage)
            count = int(self.sizes.count(stage))
            lines.append(f"float {place}[{count}];")
            first = f"{place}[{TURN}] = {literal(value)};"
            lines += CUDA.loop(TURN, count, first, unroll=True, brief=True)
            lines += self._left_at_first(stage, literal(value))
        for group, stage in self._stages():
            for read in stage.body.value_reads:
                source = self.sizes.sources.get(read)
                if source is not None and source.kind is Kind.HELD:
                    lines += self._held(source, group)
        return lines

    def _stages(self) -> list[tuple[Group, Stage]]:
        return [(group, stage) for group in self.view.groups for stage in group.stages]

    def _held(self, source: Source, group: Group) -> list[str]:
        """Load the elements of an operand that a thread needs in a group, unless it has them."""
        axes = axes_of(self.view, group) if source.inner else ()
        if (source.read, axes) in self.arrays:
            return []
        name = self._array(source.read, axes)
        width, points = self._width(source), self.sizes.points(axes)
        at = self._point_of(axes)
        loads = [
            f"{name}[{self._element(axes, width, v)}] = "
            f"tw::to_float(tw::load_global({self._address(source.steps, source.name, at, v)}));"
            for v in range(width)
        ]
        kind = f"float {name}[{points.count * width if axes else width}];"
        return [kind, *self._over(axes, loads)]

    def _array(self, read: Read, axes: tuple[str, ...]) -> str:
        return self.arrays.setdefault((read, axes), f"{self.prefix}h{len(self.arrays)}")

    def _width(self, source: Source) -> int:
        return self.vector if source.by_lane else 1

    def _element(self, axes: Sequence[str], width: int, v: int) -> str:
        """Return the place of an element of column ``v`` in an array of registers."""
        column = v if width > 1 else 0
        return (variable(TURN) * width + column).text if axes else str(column)

    # -- points ------------------------------------------------------------------------------------

    def _point_of(self, axes: Sequence[str]) -> Mapping[str, Index]:
        """Return the index along each axis of the point :data:`POINT`."""
        points = self.sizes.points(axes)
        return dict(zip(axes, points.along(index(POINT, points.total)), strict=True))

    def _over(self, axes: Sequence[str], inner: Sequence[str]) -> list[str]:
        """Write a loop over the points of a thread, if there are ``axes``."""
        if not axes:
            return list(inner)
        points = self.sizes.points(axes)
        return CUDA.loop(TURN, points.count, [*self._numbered(points), *inner], unroll=True)

    def _numbered(self, points: Points) -> list[str]:
        number = self._number(points)
        if points.is_whole:
            return [f"const int {POINT} = {number};"]
        return [
            f"const bool exists = {number} < {points.total};",
            f"const int {POINT} = exists ? {number} : {points.total - 1};",
        ]

    def _number(self, points: Points) -> Index:
        """Return the number of the point of a turn."""
        return points.number(variable(TURN, points.count), index(self.part, points.threads))

    # -- a step ------------------------------------------------------------------------------------

    def write(self) -> list[str]:
        """Return the lines of a step."""
        for number, group in enumerate(self.view.groups):
            if axes := axes_of(self.view, group):
                self._group(number, group, axes)
            else:
                for stage in group.stages:
                    self._value(stage)
        if self.sizes.crossing:
            self.lines.append("tw::sync_warp();")
        for name in self.view.first:
            stage = self.view.stage[name]
            move = f"{self.state(stage)}[{TURN}] = {self.made(stage)}[{TURN}];"
            count = int(self.sizes.count(stage))
            self.lines += CUDA.loop(TURN, count, move, unroll=True, brief=True)
        return self.lines

    def state(self, stage: Stage) -> str:
        """Return the array of a stage as it was before the step."""
        return f"{self.prefix}s{self.view.stages.index(stage)}"

    def made(self, stage: Stage) -> str:
        """Return the array of a stage as the step makes it."""
        return f"{self.prefix}r{self.view.stages.index(stage)}"

    def _columns(self, stage: Stage) -> range:
        return range(self.vector if self.view.lane in stage.axes else 1)

    def _value(self, stage: Stage) -> None:
        """Write a stage that has a value for each column."""
        name, columns = self.made(stage), self._columns(stage)
        self._load(stage, ())
        own = self._each if self.view.lane in stage.axes else [self._own]
        values = [own[v].text(stage.body) for v in columns]
        self.lines.append(f"const float {name}[{len(columns)}] = {{{', '.join(values)}}};")
        self._stores(stage, self.lines)

    def _group(self, number: int, group: Group, axes: tuple[str, ...]) -> None:
        """Write the loop of a group, and join what its threads have reduced."""
        self._meet(group, axes)
        for stage in group.stages:
            self._load(stage, axes)
            count, start = int(self.sizes.count(stage)), ""
            if stage.reducer:
                nothing = literal(REDUCERS[stage.reducer].identity)
                start = f" = {{{', '.join([nothing] * count)}}}"
            self.lines.append(f"float {self.made(stage)}[{count}]{start};")
        terms = group.reduced if group.kept else ()
        body: list[str] = []
        point = {**self._point_of(axes), **{a: variable(f"e{n}") for n, a in enumerate(terms)}}
        within = self._scope(f"d{number}_", axes, point, self._own, body, None)
        both = [
            self._scope(f"b{number}_{v}_", axes, point, within, body, v) for v in range(self.vector)
        ]
        for stage in group.stages:
            if self.view.lane not in stage.axes:
                self._at_point(stage, axes, 0, within, body)
                continue
            for v, scope in enumerate(both):
                self._hoist(stage.body, scope, self._each[v])
                self._at_point(stage, axes, v, scope, body)
        loop = self._over(axes, body)
        for axis in reversed(terms):
            extent = self.view.extent(axis)
            loop = CUDA.loop(point[axis].text, extent, loop, unroll=min(extent, TERMS))
        self.lines += loop
        for stage in group.stages:
            if terms:
                self._kept(stage, axes)
            elif stage.reducer:
                self._exchange(stage)
                self._stores(stage, self.lines)

    def _kept(self, stage: Stage, axes: tuple[str, ...]) -> None:
        """Store the sums of the points of a thread where they are wanted."""
        lines = [line for v in self._columns(stage) for line in self._left(stage, axes, v)]
        self._stores(stage, lines, axes)
        if lines:
            self.lines += self._over(axes, lines)

    def _hoist(self, node: Expression, scope: Scope, around: Scope) -> None:
        """Let parts of an expression that no inner axis is in be computed before the loop."""
        for part in self.view.before_inner(node):
            scope.names[part] = around.text(part)

    def _at_point(
        self, stage: Stage, axes: tuple[str, ...], v: int, scope: Scope, body: list[str]
    ) -> None:
        """Write an element of a map, or how a term joins a reduction."""
        columns = self._columns(stage)
        if stage.reducer is None:
            place = f"{self.made(stage)}[{self._element(axes, len(columns), v)}]"
            body.append(f"{place} = {scope.text(stage.body)};")
            scope.names[Read(stage.name, tuple(map(AxisValue, stage.axes)))] = place
            body += [*self._left(stage, axes, v), *self._shown(stage, axes)]
            if v == columns[-1]:
                self._stores(stage, body, axes)
            return
        match stage.reducer, stage.body:
            case "sum", Binary("*", left, right):
                factors = [scope.text(left), scope.text(right)]
            case _, term:
                factors = [scope.text(term)]
        kept = axes if self.view.inner_of(stage.axes) else ()
        place = f"{self.made(stage)}[{self._element(kept, len(columns), v)}]"
        join = f"{place} = {taken(stage.reducer, place, factors)};"
        is_whole = kept or self.sizes.points(axes).is_whole
        body += [join] if is_whole else [f"if (exists) {join}"]

    def _exchange(self, stage: Stage) -> None:
        """Join the results of the threads that share points: all have the result then."""
        sharing = int(self.sizes.row_threads)
        for mask in (WARP >> n for n in range(1, sharing.bit_length())):
            for v in self._columns(stage):
                place = f"{self.made(stage)}[{v}]"
                other = f"tw::shuffle_xor({place}, {mask})"
                self.lines.append(f"{place} = {joined(stage.reducer or '', place, other)};")

    # -- scopes ------------------------------------------------------------------------------------

    @cached_property
    def _own(self) -> StepScope:
        scope = self._scope("p", (), {}, None, self.lines, None)
        scope.magnitudes = magnitudes(self.view.program)
        return scope

    @cached_property
    def _each(self) -> list[StepScope]:
        return [self._scope(f"v{v}_", (), {}, self._own, self.lines, v) for v in range(self.vector)]

    def _scope(
        self,
        prefix: str,
        axes: tuple[str, ...],
        point: Mapping[str, Index],
        around: StepScope | None,
        lines: list[str],
        v: int | None,
    ) -> StepScope:
        """Return a scope that knows a point of some inner ``axes``, and the column ``v``: what
        differs along these alone is its own, or along inner axes if columns are alike."""
        lane = {self.view.lane}
        known, own = ({*point}, {*point}) if v is None else ({*point} | lane, lane)
        unknown = {*self.view.inner, *lane} - known

        def leaf(node: Expression) -> str | None:
            asked = node.node if isinstance(node, Integer) else node
            if not isinstance(asked, Read | AxisValue) or not asked.axes.isdisjoint(unknown):
                return None
            if around is not None and asked.axes.isdisjoint(own):
                return None
            if isinstance(asked, AxisValue):
                kind = "i64" if isinstance(node, Integer) else "float"
                return f"({kind}){self._index(asked.name, point, v or 0)}"
            return None if isinstance(node, Integer) else self._entry(asked, axes, point, v or 0)

        return StepScope(prefix, leaf, lines, around)

    def _index(self, axis: str, point: Mapping[str, Index], v: int) -> str:
        return f"({self._place(axis, point, v)})"

    def _place(self, axis: str, point: Mapping[str, Index], v: int) -> Index:
        """Return the index along an axis."""
        if axis == self.view.position:
            return variable(STEP)
        if axis == self.view.lane:
            return variable(f"c{v}")
        return point[axis] if axis in point else self.at[axis]

    def _entry(self, read: Read, axes: tuple[str, ...], point: Mapping[str, Index], v: int) -> str:
        stage = self.view.stage.get(read.name)
        if stage is not None:
            if is_crossing(self.view, read, axes):
                return self._elsewhere(stage, read, point, v)
            name = self.state(stage) if self.view.is_before(read) else self.made(stage)
            inner = axes if self.view.inner_of(stage.axes) else ()
            return f"{name}[{self._element(inner, len(self._columns(stage)), v)}]"
        if read.name in self.ahead:
            return f"{self.arrays[read, axes]}[{TURN}]"
        source = self.sizes.sources[read]
        if source.kind is Kind.DIRECT:
            address = self._address(source.steps, source.name, point, v)
            element = f"tw::to_float(tw::load_global({address}))"
            tests = [f"{self._affine(b, point, v)} >= 0" for b in self.view.borders.get(read, ())]
            if not tests:
                return element
            return f"{' && '.join(tests)} ? {element} : {literal(read.outside or 0.0)}"
        axes = axes if source.inner else ()
        place = f"{self.arrays[read, axes]}[{self._element(axes, self._width(source), v)}]"
        return place if source.kind is Kind.HELD else f"tw::to_float({place})"

    def _affine(self, form: Affine, point: Mapping[str, Index], v: int) -> str:
        """Return C text of a sum of multiples of axes."""
        total = Index(constant=form.constant)
        for atom, factor in form.terms:
            assert isinstance(atom, AxisValue)
            total = total + self._place(atom.name, point, v) * factor
        return total.text

    def _address(self, steps: Steps, pointer: str, point: Mapping[str, Index], v: int) -> str:
        """Return C text of the address of an element, beyond those of rows."""
        total = Index()
        for axis, step in steps.by_axis.items():
            if axis not in self.view.rows:
                total = total + self._place(axis, point, v) * step
        return f"{pointer} + ({total})"

    # -- elements of other threads -----------------------------------------------------------------

    def _meet(self, group: Group, axes: tuple[str, ...]) -> None:
        """Let the threads of a warp see what others have left that a group reads."""
        reads = (read for stage in group.stages for read in stage.body.value_reads)
        if any(is_crossing(self.view, read, axes) for read in reads):
            self.lines.append("tw::sync_warp();")

    def _left_at_first(self, stage: Stage, value: str) -> list[str]:
        """Leave what the first step reads of a stage for other threads, if they read it."""
        if stage not in self.sizes.crossing:
            return []
        axes = self.view.inner_of(stage.axes)
        points = [self._point_of(axes)[axis] for axis in axes]
        stores = [
            f"tw::store_shared({self._place_left(stage, points, v, '0')}, {value});"
            for v in self._columns(stage)
        ]
        return self._over(axes, stores)

    def _left(self, stage: Stage, axes: tuple[str, ...], v: int) -> list[str]:
        """Leave an element of a stage for other threads, if they read it."""
        if stage not in self.sizes.crossing:
            return []
        points = [self._point_of(axes)[axis] for axis in self.view.inner_of(stage.axes)]
        place = self._place_left(stage, points, v, f"({NUMBER} + 1) % 2")
        value = f"{self.made(stage)}[{self._element(axes, len(self._columns(stage)), v)}]"
        store = f"tw::store_shared({place}, {value});"
        return [store] if self.sizes.points(axes).is_whole else [f"if (exists) {store}"]

    def _elsewhere(self, stage: Stage, read: Read, point: Mapping[str, Index], v: int) -> str:
        """Read an element that any thread of the warp may have left."""
        points = [point[axis] for axis in inner_indices(self.view, read)]
        turn = f"{NUMBER} % 2" if self.view.is_before(read) else f"({NUMBER} + 1) % 2"
        return f"tw::load_shared<float>({self._place_left(stage, points, v, turn)})"

    def _place_left(self, stage: Stage, points: Sequence[Index], v: int, turn: str) -> str:
        """Return C text of the place of an element that is left for other threads, in one of two
        turns."""
        place = Index()
        inner = self.view.inner_of(stage.axes)
        for axis, point in zip(inner, points, strict=True):
            place = place * self.view.extent(axis) + point
        element = place * int(self.sizes.columns) + variable("column") * self.vector + v
        bytes = int(self.sizes.crossing_bytes(stage))
        return f"{self.left[stage.name]} + {turn} * {bytes} + {element * REAL}"

    # -- operands in shared memory -----------------------------------------------------------------

    def _load(self, stage: Stage, axes: tuple[str, ...]) -> None:
        """Load the elements that a stage reads from shared memory, unless they are there."""
        for read in stage.body.value_reads:
            source = self.sizes.sources.get(read)
            key = axes if source is None or source.inner else ()
            if (read, key) in self.arrays:
                continue
            if source is not None and source.kind is Kind.STAGED:
                self.lines += self._loaded(source, self._array(read, key), key)
            elif read.name in self.ahead and read.name not in self.view.stage:
                name, place = self._array(read, key), self.ahead[read.name]
                self.lines += self._loaded_points("float", name, place, axes, axes)

    def _loaded(self, source: Source, name: str, axes: tuple[str, ...]) -> list[str]:
        kind, place = C_TYPES[source.array.dtype], self.places[source]
        if axes:
            return self._loaded_points(kind, name, place, source.inner, axes)
        width = self._width(source)
        bytes = self.vector * source.array.element.bytes
        first = f" + column * {bytes}" if source.by_lane else ""
        load = f"tw::load_shared<{width}>({name}, {place}{first});"
        return [f"{kind} {name}[{width}];", load]

    def _loaded_points(
        self, kind: str, name: str, place: str, inner: Sequence[str], axes: tuple[str, ...]
    ) -> list[str]:
        """Load elements along ``inner`` axes for the points of a thread, which lie along
        ``axes``."""
        points, bytes = self.sizes.points(axes), SIZES[kind]
        declared, vector = f"{kind} {name}[{points.count}];", points.vector
        if tuple(inner) == axes and vector > 1:
            number = self._number(points) * bytes
            to = f"tw::load_shared<{vector}>({name} + {TURN}, {place} + {number});"
            head = CUDA.loop(TURN, points.count, to, step=vector, unroll=True, brief=True)
            return [declared, *head]
        element, at = Index(), self._point_of(axes)
        for axis in inner:
            element = element * self.view.extent(axis) + at[axis]
        load = f"{name}[{TURN}] = tw::load_shared<{kind}>({place} + {element * bytes});"
        return [declared, *self._over(axes, [load])]

    def _shown(self, stage: Stage, axes: tuple[str, ...]) -> list[str]:
        """Leave an element of what is computed ahead for the steps."""
        if stage.name not in self.ahead:
            return []
        place = f"{self.ahead[stage.name]} + {index(POINT) * REAL}"
        store = f"tw::store_shared({place}, {self.made(stage)}[{TURN}]);"
        return [store] if self.sizes.points(axes).is_whole else [f"if (exists) {store}"]

    # -- outputs -----------------------------------------------------------------------------------

    def _stores(self, stage: Stage, lines: list[str], axes: tuple[str, ...] = ()) -> None:
        """Store a stage where it is an output; one of the threads that have an element does."""
        for output in self.view.outputs:
            if output.name == stage.name:
                point = self._point_of(axes)
                tests = [] if axes else [f"{PART} == 0"] * (int(self.sizes.row_threads) > 1)
                if axes and not self.sizes.points(axes).is_whole:
                    tests.append("exists")
                lines += self._store(output, stage, axes, point, tests)

    def _store(
        self,
        output: Output,
        stage: Stage,
        axes: Sequence[str],
        point: Mapping[str, Index],
        tests: Sequence[str],
    ) -> list[str]:
        steps, columns = self.view.written(output), self._columns(stage)
        kind = C_TYPES[output.dtype]
        extent, name = self.view.extent(self.view.lane), self.made(stage)
        own = variable("column0") + variable("column") * self.vector
        together = len(columns) if self._lies_together(steps, columns) else 1
        lines: list[str] = []
        for v in columns[::together]:
            texts = [
                f"tw::from_float<{kind}>({name}[{self._element(axes, len(columns), v + n)}])"
                for n in range(together)
            ]
            place = self._address(steps, self.pointers[output.name], point, v)
            inside = [f"{own + v} < {extent}"] * (extent % int(self.sizes.columns) > 0)
            store = [f"tw::store_global({place}, {texts[0]});"]
            if together > 1:
                made = f"const {kind} made[{together}] = {{{', '.join(texts)}}};"
                store = [made, f"tw::store_global<{together}>({place}, made);"]
            test = " && ".join([*tests, *inside])
            lines += CUDA.when(test, store) if test else CUDA.block(*store)
        return lines

    def _lies_together(self, steps: Steps, columns: Sequence[int]) -> bool:
        """Tell whether the columns of a thread lie side by side, at addresses that a vector may
        have."""
        others = [step for axis, step in steps.by_axis.items() if axis != self.view.lane]
        apart = gcd(steps.offset, self.view.extent(self.view.lane), *others)
        return steps.step(self.view.lane) == 1 and apart % len(columns) == 0
