"""View a program of one reduction and maps after it as kept loops and reduced loops.

:mod:`spaces.derivation.rows` vectorises along the reduced axes; this view vectorises along the kept
ones. Each output element has a reduction of its own, over a window, a column, or all of one
channel, and neighbours in memory are reduced at the same time. Pooling, depthwise convolution and
sums of columns are such programs. Loops and places are those of :mod:`spaces.derivation.maps`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from tilewright.spaces.derivation.algebra import factors
from tilewright.spaces.derivation.inlining import inlined
from tilewright.spaces.derivation.maps.nest import Loop, Nest
from tilewright.spaces.derivation.maps.subjects import Subjects
from tilewright.spaces.derivation.maps.view import Access, written_stages
from tilewright.spaces.derivation.products.addresses import Bound
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.functions import REDUCERS
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import AxisValue, Expression, Read


@dataclass(frozen=True)
class Bounded(Access):
    """The value of a read at each point of the loops: an element of the array where all ``bounds``
    hold, and ``outside`` elsewhere.
    """

    bounds: tuple[Bound, ...] = ()
    outside: float = 0.0


@dataclass(frozen=True)
class KeptView:
    """``element`` reduced by ``reducer`` over the loops ``taps`` at each point of the loops
    ``kept``, and ``values`` of the result, which they read by the name of ``state``.

    Kept loops run from the slowest to the fastest in the first output's memory, taps likewise in
    the memory of what is read first; ``reads`` says where reads find their elements.
    """

    program: Program
    kept: tuple[Loop, ...]
    taps: tuple[Loop, ...]
    reducer: str
    state: str
    element: Expression
    values: tuple[Expression, ...]
    outputs: tuple[Access, ...]
    reads: Mapping[Read, Bounded] = field(hash=False)

    @property
    def lane(self) -> Loop:
        """The kept loop along which outputs lie side by side."""
        return self.kept[-1]

    @cached_property
    def extents(self) -> Mapping[str, int]:
        """The extent of every loop."""
        return {loop.name: loop.extent for loop in (*self.kept, *self.taps)}

    @cached_property
    def element_reads(self) -> tuple[Read, ...]:
        """The reads whose values make the element, equal ones once."""
        return values_read(self.element, self.state)

    @cached_property
    def neutral_outside(self) -> frozenset[Read]:
        """Reads that outside of their array make the element one that changes no result."""
        identity = REDUCERS[self.reducer].identity
        return frozenset(
            read for read in self.element_reads if self._outside(read) == (True, identity)
        )

    def _outside(self, read: Read) -> tuple[bool, float | None]:
        """Tell whether the element becomes a constant once a read is outside, and which
        constant.
        """
        value = self.reads[read].outside
        if not self.reads[read].bounds:
            return False, None
        if self.element == read:
            return True, value
        if value == 0 and read in factors(self.element):
            return True, 0.0
        return False, None


def values_read(expression: Expression, state: str) -> tuple[Read, ...]:
    """Return the reads of arrays whose values an expression is computed of, from left to right."""
    found: dict[Read, None] = {}
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Read):
            waiting += reversed(node.children)
        elif node.name != state:
            found[node] = None
    return tuple(found)


def loops_across(view: KeptView) -> tuple[str, ...]:
    """Kept loops but that of lanes along which all elements are equally far apart, the fastest
    first; the word ``none`` if there is none."""
    accesses = (*view.reads.values(), *view.outputs)
    found = (
        loop.name
        for loop in view.kept[-2::-1]
        if all(access.step(loop.name) is not None for access in accesses)
    )
    return tuple(found) or ("none",)


def kept_of(program: Program) -> KeptView:
    """Return the program seen so; :class:`InputError` says why it cannot be."""
    if program.conditions:
        raise InputError(f"the reduction is bounded by {program.conditions[0]}; windows are whole")
    program = _with_own_axes(program)
    reduced = _reduction(program)
    outputs = written_stages(program)
    values = tuple(inlined(program, _body(stage), lambda _: True) for stage in outputs)
    element = reduced.body.at(_axes_of_state(reduced, values, outputs[0]))
    element = inlined(program, element, lambda _: True)
    found = Subjects(program, outputs, (element, *values), reduced)
    if found.wholes:
        raise InputError(f"{found.wholes[0]} is a number made of axes; values of axes do not count")
    nest = _nest(found, program.outputs[0].name)
    writes = program.outputs[0].name
    kept = tuple(loop for loop in nest.loops if nest.indices[writes].coefficient(loop.name))
    if not kept:
        raise InputError("all axes are reduced; no axis is kept")
    return KeptView(
        program=program,
        kept=kept,
        taps=tuple(loop for loop in nest.loops if loop not in kept),
        reducer=reduced.reducer or "",
        state=reduced.name,
        element=element,
        values=values,
        outputs=tuple(Access(o, nest.indices[o.name]) for o in program.outputs),
        reads={read: _bounded(program, found, nest, read) for read in found.reads},
    )


cached_kept = lru_cache(maxsize=64)(kept_of)


def _with_own_axes(program: Program) -> Program:
    """Return the program with other names for axes that are reduced where outputs have them, too:
    another point of such an output is not another element of its reduction."""
    reduced = _reduction(program)
    used = {axis for output in program.outputs for axis in program.stage[output.name].axes}
    names = {axis: f"{axis}'" for axis in reduced.over if axis in used}
    if not names:
        return program
    body = reduced.body.at({axis: AxisValue(names.get(axis, axis)) for axis in program.extent})
    over = tuple(names.get(axis, axis) for axis in reduced.over)
    return replace(
        program,
        extents=(*program.extents, *((new, program.extent[old]) for old, new in names.items())),
        stages=tuple(
            replace(s, over=over, body=body) if s is reduced else s for s in program.stages
        ),
    )


def _reduction(program: Program) -> Stage:
    """Return the only stage that reduces."""
    found = [stage for stage in program.stages if stage.reducer]
    if len(found) != 1:
        names = ", ".join(stage.name for stage in found) or "none"
        raise InputError(f"reductions: {names}; along kept axes there is one")
    if REDUCERS[found[0].reducer or ""].argument:
        raise InputError(f"{found[0].name} is a place that {found[0].reducer} finds")
    return found[0]


def _body(stage: Stage) -> Expression:
    """Write an output in terms of the results of reductions."""
    return Read(stage.name, tuple(map(AxisValue, stage.axes))) if stage.reducer else stage.body


def _axes_of_state(
    reduced: Stage, values: tuple[Expression, ...], output: Stage
) -> Mapping[str, Expression]:
    """Map the reduction's axes to the indices by which outputs read it; reduced axes are
    included.
    """
    reads = {read for value in values for read in value.reads if read.name == reduced.name}
    own: Mapping[str, Expression] = {axis: AxisValue(axis) for axis in reduced.over}
    if len(reads) != 1:
        raise InputError(f"{reduced.name} is read at {len(reads)} places; outputs read it at one")
    (read,) = reads
    if {i.name for i in read.indices if isinstance(i, AxisValue)} != set(output.axes) or len(
        read.indices
    ) != len(output.axes):
        raise InputError(f"{read} is not the result for each element of {output.name}")
    return {**own, **dict(zip(reduced.axes, read.indices, strict=True))}


def _nest(found: Subjects, output: str) -> Nest:
    """Return the loops in their order, numbered."""
    first = found.reads[:1]
    return found.nest.split().ordered(output, *first).merged().numbered()


def _bounded(program: Program, found: Subjects, nest: Nest, read: Read) -> Bounded:
    bounds = tuple(
        Bound(nest.indices[read, i], bound.extent)
        for i, bound in enumerate(found.places[read].bounds)
    )
    array = program.operand[read.name]
    outside = found.places[read].outside
    return Bounded(array, nest.indices[read], bounds, 0.0 if outside is None else outside)
