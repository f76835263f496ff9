"""States of cycles, read one step before by stages of their own.

``h[t] = tanh(w * inside(h[t - 1], 0) + x[t])`` becomes ``h_before[t] = inside(h[t - 1], 0)`` and
``h[t] = tanh(w * h_before[t] + x[t])``. All that a step reads then is of this step, so all that
flows back through it is, too; and what flows into the step before is one stage, the derivative of
``h_before``, which the derivative of ``h`` reads one step after: ``inside(dh_before[t + 1], 0)``
(backpropagation through time: Werbos, Proceedings of the IEEE 78, 1990).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tilewright.spaces.derivation.algebra import minus, number
from tilewright.spaces.language.cycles import Cycle, arranged, cycles, step_of
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import AxisValue, Expression, Read


@dataclass(frozen=True)
class Carried:
    """The map ``before`` that holds the ``state`` of a cycle as it was one step before."""

    before: Stage
    state: Stage
    axis: str
    direction: int

    def entry(self, name: str) -> Read:
        """Return an entry of the derivative ``name`` of the map, one step after; 0 behind the last
        step."""
        return Read(name, _at_step(self.state, self.axis, self.direction), 0.0)

    def written(self, read: Read) -> Expression:
        """Return a read of the map as one of the state, where it is at some step itself."""
        place, outside = self.before.axes.index(self.axis), _outside(self.before)
        if read.indices[place] != AxisValue(self.axis) or read.outside not in (None, outside):
            return read
        indices = list(read.indices)
        indices[place] = _at_step(self.state, self.axis, -self.direction)[place]
        return Read(self.state.name, tuple(indices), outside)


def with_carried(program: Program) -> tuple[Program, Sequence[Carried]]:
    """Return a program whose cycles read their states by maps alone, and these maps."""
    found = list(_every(program))
    if not found:
        return program, found
    stages = [replace(s, body=_by_maps(program, s.body, found)) for s in program.stages]
    maps = (each.before for each in found)
    return replace(program, stages=arranged([*maps, *stages])), found


def without_carried(stages: Iterable[Stage], carried: Sequence[Carried]) -> list[Stage]:
    """Return stages that read states, and not the maps of them."""
    maps = {each.before.name: each for each in carried}

    def visit(node: Expression) -> Expression:
        children = tuple(map(visit, node.children))
        node = node if children == node.children else node.with_children(children)
        return (
            maps[node.name].written(node) if isinstance(node, Read) and node.name in maps else node
        )

    return [s if s.name in maps else replace(s, body=visit(s.body)) for s in stages]


def _every(program: Program) -> Iterator[Carried]:
    """Yield a map for each value that a state has before the first step."""
    taken = {*program.stage, *program.operand, *program.extent}
    for cycle in cycles(program):
        for name in cycle.state:
            state = program.stage[name]
            reads = (read for stage in program.stages for read in stage.body.value_reads)
            values = (r.outside for r in reads if _is_before(r, state, cycle))
            for outside in dict.fromkeys(values):
                own = _unused(f"{name}_before", taken)
                taken.add(own)
                read = Read(name, _at_step(state, cycle.axis, -cycle.direction), outside)
                before = Stage(own, state.axes, None, (), read)
                yield Carried(before, state, cycle.axis, cycle.direction)


def _unused(stem: str, taken: Collection[str]) -> str:
    numbered = (f"{stem}_{count}" for count in range(2, len(taken) + 3))
    return stem if stem not in taken else next(name for name in numbered if name not in taken)


def _is_before(read: Read, state: Stage, cycle: Cycle) -> bool:
    if read.name != state.name or read.outside is None:
        return False
    index = read.indices[state.axes.index(cycle.axis)]
    return step_of(index, cycle.axis) == -cycle.direction


def _at_step(stage: Stage, axis: str, ahead: int) -> tuple[Expression, ...]:
    """Return the indices of a stage's own element, some steps ahead."""
    step = minus(AxisValue(axis), number(float(-ahead)))
    return tuple(step if own == axis else AxisValue(own) for own in stage.axes)


def _outside(before: Stage) -> float | None:
    return before.body.outside if isinstance(before.body, Read) else None


def _by_maps(program: Program, node: Expression, carried: Sequence[Carried]) -> Expression:
    """Return an expression that reads the maps of states one step before."""
    children = tuple(_by_maps(program, child, carried) for child in node.children)
    node = node if children == node.children else node.with_children(children)
    if not isinstance(node, Read) or node.outside is None:
        return node
    for each in carried:
        if node.name == each.state.name and node.outside == _outside(each.before):
            place = each.state.axes.index(each.axis)
            if step_of(node.indices[place], each.axis) == -each.direction:
                indices = list(node.indices)
                indices[place] = AxisValue(each.axis)
                stays = _stays(program.extent, each.state, indices)
                return Read(each.before.name, tuple(indices), None if stays else node.outside)
    return node


def _stays(extent: Mapping[str, int], stage: Stage, indices: Sequence[Expression]) -> bool:
    """Tell whether plain axes name an element that a stage has."""
    return all(
        isinstance(index, AxisValue) and extent[index.name] <= extent[axis]
        for axis, index in zip(stage.axes, indices, strict=True)
    )
