"""Stages that read themselves one step before or after, alone or around a cycle of stages.

    u[b, t, j] = sum[i](k[b, t, i] * inside(S[b, t - 1, i, j], 0))
    S[b, t, i, j] = inside(S[b, t - 1, i, j], 0) + k[b, t, i] * (v[b, t, j] - u[b, t, j])

Such stages have no value before the step before has: they are computed together, one step after the
other. The value of ``inside`` is what the first step reads. Those that read one step after, such as
``inside(S[b, t + 1, i, j], 0)``, are computed from the last step down to the first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tilewright.spaces.errors import InputError
from tilewright.spaces.language.affine import affine
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import AxisValue, Expression, Read

Steps = tuple[str, int]
"""An axis, and the direction of steps along it."""


@dataclass(frozen=True)
class Cycle:
    """The names of ``stages`` that are computed together, in order, step by step along ``axis``;
    those of its ``state`` are read at the step that was computed last. Steps go up where the
    ``direction`` is 1, and down where it is -1."""

    axis: str
    stages: tuple[str, ...]
    state: tuple[str, ...]
    direction: int = 1

    def steps(self, extent: int) -> range:
        """Return all steps in the order in which they are computed; ``extent`` is the axis's."""
        return range(extent)[:: self.direction]


@lru_cache(maxsize=256)
def cycles(program: Program) -> tuple[Cycle, ...]:
    """Return the cycles of a program, in the order of their stages; :class:`InputError` for one
    that no steps along one axis compute."""
    if not reads_ahead(program.stages):
        return ()
    return tuple(_checked(program, group) for group in _groups(program.stages) if _is_cycle(group))


def in_cycles(program: Program) -> frozenset[str]:
    """Return the names of all stages of cycles."""
    return frozenset(name for cycle in cycles(program) for name in cycle.stages)


def in_states(program: Program) -> frozenset[str]:
    """Return the names of all stages that cycles read one step before."""
    return frozenset(name for cycle in cycles(program) for name in cycle.state)


def reading_themselves(stages: Sequence[Stage]) -> frozenset[str]:
    """Return the names of stages that are computed of themselves, before they are a program."""
    if not reads_ahead(stages):
        return frozenset()
    groups = (group for group in _groups(stages) if _is_cycle(group))
    return frozenset(stage.name for group in groups for stage in group)


def computed_of(stages: Iterable[Stage], names: Collection[str]) -> set[str]:
    """Return names of stages, and those of all arrays that these are computed of."""
    known, found, waiting = {stage.name: stage for stage in stages}, set(names), [*names]
    while waiting:
        name = waiting.pop()
        new = {r.name for r in known[name].body.reads} - found if name in known else set[str]()
        found |= new
        waiting += new
    return found


def arranged(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Return stages in an order in which each reads earlier ones, and those of its cycle, which
    follow each other as they are given."""
    if not reads_ahead(stages):
        return tuple(stages)
    waiting, found = _groups(stages), list[Stage]()
    while waiting:
        names = {stage.name for group in waiting for stage in group}
        ready = next(group for group in waiting if not _others(group) & names)
        waiting.remove(ready)
        found += ready
    return tuple(found)


def _others(group: Sequence[Stage]) -> set[str]:
    """Return the names that stages of a group read beside their own."""
    return {name for stage in group for name in _names(stage)} - {stage.name for stage in group}


def _names(stage: Stage) -> Iterator[str]:
    return (read.name for read in stage.body.reads)


def reads_ahead(stages: Sequence[Stage]) -> str:
    """Return the name of a stage that reads itself or a later one; empty if there is none."""
    later: set[str] = set()
    for stage in reversed(stages):
        later.add(stage.name)
        if not later.isdisjoint(_names(stage)):
            return stage.name
    return ""


def _groups(stages: Sequence[Stage]) -> list[list[Stage]]:
    """Return the stages in groups of those that read each other, each in the given order."""
    reached = _reached({stage.name: {*_names(stage)} for stage in stages})
    groups: list[list[Stage]] = []
    for stage in stages:
        for group in groups:
            first = group[0].name
            if first in reached[stage.name] and stage.name in reached[first]:
                group.append(stage)
                break
        else:
            groups.append([stage])
    return groups


def _reached(reads: Mapping[str, Collection[str]]) -> Mapping[str, Collection[str]]:
    """Return the stages that each stage is computed of, itself included if it reads itself."""
    found = {}
    for name in reads:
        seen, waiting = set[str](), [name]
        while waiting:
            new = {other for other in reads[waiting.pop()] if other in reads} - seen
            seen |= new
            waiting += new
        found[name] = seen
    return found


def _is_cycle(group: Sequence[Stage]) -> bool:
    return len(group) > 1 or group[0].name in _names(group[0])


# -- what steps along one axis compute -----------------------------------------------------------


def _checked(program: Program, group: Sequence[Stage]) -> Cycle:
    places = {stage.name: place for place, stage in enumerate(group)}
    every = [(stage, read) for stage in group for read in stage.body.reads if read.name in places]
    ahead = [(s, r) for s, r in every if places[r.name] >= places[s.name]]
    axis, direction = _common(program, ahead)
    for stage in group:
        _check_member(program, stage, axis, places)
    before = set()
    for stage, read in every:
        if _check_read(stage, read, program.stage[read.name].axes.index(axis), axis, direction):
            before.add(read.name)
    state = tuple(name for name in places if name in before)
    return Cycle(axis, tuple(places), state, direction)


def _common(program: Program, ahead: Sequence[tuple[Stage, Read]]) -> Steps:
    """Return the one axis along which all reads of stages that come later step, and the direction
    of the steps. Where steps up and steps down serve, they go up."""
    common: list[Steps] = []
    for stage, read in ahead:
        found = _stepped(stage, read, program.stage[read.name].axes)
        both = [each for each in common or found if each in found]
        if not both:
            own, other = map(_along, (found, common))
            raise _refused(stage, f"{read} steps {own}, and another read {other}")
        common = both
    common = [each for each in common if each[1] > 0] or common
    if len(common) > 1:
        stage, read = ahead[0]
        raise _refused(stage, f"{read} steps {_along(common)}")
    return common[0]


def _along(found: Sequence[Steps]) -> str:
    names = (axis if up > 0 else f"{axis} backwards" for axis, up in found)
    return f"along {' and '.join(names)}"


def _stepped(stage: Stage, read: Read, axes: Sequence[str]) -> list[Steps]:
    """Return the axes along which a stage reads itself, or a later one, one step before or after,
    each with the direction in which steps go."""
    steps = {a: step_of(index, a) for a, index in zip(axes, read.indices, strict=True)}
    found = [(axis, -step) for axis, step in steps.items() if step in (-1, 1)]
    if found and read.outside is not None:
        return found
    for axis, step in steps.items():
        if step:
            raise _refused(stage, f"{read} is {_words(step)} along {axis}")
    raise _refused(stage, f"{read} is not one step before or after")


def _words(step: int) -> str:
    count = f"{abs(step)} steps" if abs(step) > 1 else "one step"
    return f"{count} {'before' if step < 0 else 'later'}"


def step_of(index: Expression, axis: str) -> int | None:
    """Return ``n`` of an index ``axis + n``; None for another index."""
    found = affine(index)
    return found.constant if found.terms == ((AxisValue(axis), 1),) else None


def _check_member(program: Program, stage: Stage, axis: str, members: Mapping[str, int]) -> None:
    if axis in stage.over:
        raise _refused(stage, f"it reduces over {axis}, along which it is computed step by step")
    if axis not in stage.axes:
        raise _refused(stage, f"it has no axis {axis}, along which {', '.join(members)} step")


def _check_read(stage: Stage, read: Read, dimension: int, axis: str, direction: int) -> bool:
    """Refuse a read of a cycle that is of neither this step nor the one that was computed last;
    tell whether it is of that one."""
    step = step_of(read.indices[dimension], axis)
    if step not in (0, -direction):
        word = "not one step before or after" if step is None else f"{_words(step)} along {axis}"
        raise _refused(stage, f"{read} is {word}")
    others = (index for d, index in enumerate(read.indices) if d != dimension)
    if moving := next((index for index in others if axis in index.axes), None):
        raise _refused(stage, f"'{moving}' in {read} moves along {axis}, too")
    return step == -direction


def _refused(stage: Stage, problem: str) -> InputError:
    return InputError(
        f"stage {stage.name!r} reads itself, and {problem}; allowed: one step before or after "
        "along one axis, such as inside(h[b, t - 1], 0)"
    )
