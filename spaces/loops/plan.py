"""Plan the loop nests of a program: one nest for each stage, in order.

A stage that others read becomes an array of the workspace. A map that only one read of another
stage uses gets no loops of its own: its expression is inlined there, unless that would compute it
more often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from tilewright.spaces.algebra.integers import round_up
from tilewright.spaces.language.functions import REDUCERS
from tilewright.spaces.language.program import Output, Program, Stage
from tilewright.spaces.language.tree import Expression, Read
from tilewright.spaces.loops.scalars import is_integer_value
from tilewright.spaces.workloads.array import Array

ELEMENT = 8
"""Bytes of an element of the workspace: a float64, or a whole number."""
ALIGNMENT = 128
"""Bytes: arrays of the workspace begin at multiples of it."""
MAX_LEVELS = 64
"""Levels of an expression that stands for those of several stages."""


@dataclass(frozen=True)
class Nest:
    """The loops of one stage; ``output`` is what they write of the program's, and ``kept`` says
    whether they write the workspace, too."""

    stage: Stage
    output: Output | None
    kept: bool


@dataclass(frozen=True)
class Plan:
    """The loop nests of a program."""

    program: Program

    @cached_property
    def nests(self) -> Sequence[Nest]:
        """All loop nests, in an order in which each reads only arrays that earlier ones wrote."""
        outputs = {output.name: output for output in self.program.outputs}
        stages = self._stages
        read = {r.name for stage in stages for r in stage.body.reads}
        return [Nest(s, outputs.get(s.name), s.name in read) for s in stages]

    @cached_property
    def _stages(self) -> Sequence[Stage]:
        """The stages that have loops, with the expressions of the others in their place."""
        program = self.program
        counts = Counter(r.name for stage in program.stages for r in stage.body.reads)
        written, found = {o.name for o in program.outputs}, dict[str, Stage]()
        for stage in program.stages:
            body = _with(stage.body, _plain_reads(stage, found, program, counts, written))
            found[stage.name] = replace(stage, body=body)
        left = {r.name for stage in found.values() for r in stage.body.reads} | written
        return _reachable(found, written & left)

    @cached_property
    def whole(self) -> Mapping[str, bool]:
        """Tell for each operand and stage whether it holds integers."""
        known = {o.name: o.element.is_integer for o in self.program.operands}
        for nest in self.nests:
            stage = nest.stage
            argument = stage.reducer is not None and REDUCERS[stage.reducer].argument
            known[stage.name] = argument or is_integer_value(stage.body, known)
        return known

    @cached_property
    def starts(self) -> Mapping[str, int]:
        """Bytes from the start of the workspace to each array there."""
        starts, end = dict[str, int](), 0
        for nest in self.nests:
            if nest.kept:
                starts[nest.stage.name] = end
                end += round_up(self.points(nest.stage.axes) * ELEMENT, ALIGNMENT)
        return starts

    @property
    def workspace_bytes(self) -> int:
        """Bytes of all arrays of the workspace."""
        kept = [nest.stage for nest in self.nests if nest.kept]
        last = kept[-1] if kept else None
        return self.starts[last.name] + self.points(last.axes) * ELEMENT if last else 0

    def points(self, axes: Sequence[str]) -> int:
        """Return the points of some axes."""
        return prod(self.program.shape(tuple(axes)))

    def array(self, name: str) -> Array:
        """Return an operand, or a stage as it lies in the workspace."""
        if name in self.program.operand:
            return self.program.operand[name]
        shape = self.program.shape(self.program.stage[name].axes)
        return Array(name, "float64", shape, tuple(range(len(shape))))


def _plain_reads(
    reader: Stage,
    known: Mapping[str, Stage],
    program: Program,
    counts: Mapping[str, int],
    written: set[str],
) -> dict[Read, Expression]:
    """Map the reads of maps that can be inlined to their expressions: each map is read once, and is
    not computed more often when inlined.
    """
    found = {}
    points = prod(program.shape((*reader.axes, *reader.over)))
    for read in reader.body.value_reads:
        stage = known.get(read.name)
        if stage is None or stage.reducer or stage.name in written or counts[stage.name] > 1:
            continue
        computed = prod(program.shape(stage.axes))
        tables = any(index.reads for index in read.indices)
        deep = stage.body.levels + reader.body.levels > MAX_LEVELS
        if read.outside is None and not tables and not deep and points <= computed:
            found[read] = stage.body.at(dict(zip(stage.axes, read.indices, strict=True)))
    return found


def _with(node: Expression, instead: Mapping[Read, Expression]) -> Expression:
    if isinstance(node, Read) and node in instead:
        return instead[node]
    children = tuple(_with(child, instead) for child in node.children)
    return node if children == node.children else node.with_children(children)


def _reachable(stages: Mapping[str, Stage], outputs: set[str]) -> list[Stage]:
    """Return the stages that outputs are computed of, in order."""
    needed, waiting = set[str](), list(outputs)
    while waiting:
        name = waiting.pop()
        if name in stages and name not in needed:
            needed.add(name)
            waiting += [read.name for read in stages[name].body.reads]
    return [stage for name, stage in stages.items() if name in needed]
