"""The stages of a program in normal form.

Maps and counts are written into what reads them, dimensions of outputs take the order of memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tilewright.spaces.language.cycles import in_states
from tilewright.spaces.language.identity.normal import Form, normal
from tilewright.spaces.language.program import Output, Program, Stage
from tilewright.spaces.language.tree import Expression, Negation, Number, Read
from tilewright.spaces.workloads.array import Array

MAX_NODES = 200
"""The most nodes of a map that is written into its readers; a larger one stays a stage."""


@dataclass(frozen=True)
class NormalStage:
    """A stage in normal form; ``kept`` axes in the order of memory, if it is an output."""

    stage: Stage
    kept: tuple[str, ...]
    body: Form
    conditions: tuple[Form, ...]
    output: str

    @property
    def axes(self) -> tuple[str, ...]:
        """The kept axes, then the reduced ones."""
        return (*self.kept, *self.stage.over)


def normal_stages(program: Program) -> dict[str, NormalStage]:
    """Normalise all stages, by name; stages that were inlined into others are included. States
    are inlined into none."""
    maps: dict[str, Stage] = {}
    found = {}
    outputs = {output.name: output for output in program.outputs}
    states = in_states(program)
    for stage in program.stages:
        written = _written_out(stage.body, maps)
        body = normal(written)
        count = _count(program, stage, body)
        is_small = sum(1 for _ in written.walk()) <= MAX_NODES
        if stage.reducer is None and is_small and stage.name not in states:
            maps[stage.name] = Stage(stage.name, stage.axes, None, (), written)
        elif count is not None:
            maps[stage.name] = Stage(stage.name, stage.axes, None, (), count)
        output = outputs.get(stage.name)
        kept = tuple(stage.axes[d] for d in output.order) if output else stage.axes
        conditions = tuple(dict.fromkeys(map(normal, program.bounding(stage))))
        place = _output_text(program, output) if output else ""
        found[stage.name] = NormalStage(stage, kept, body, conditions, place)
    return found


def _count(program: Program, stage: Stage, body: Form) -> Expression | None:
    """Return the sum of a constant over all of some axes."""
    if stage.reducer != "sum" or program.bounding(stage) or body.value is None:
        return None
    total = body.value * prod(program.shape(stage.over))
    return Number(total) if total >= 0 else Negation(Number(-total))


def _output_text(program: Program, output: Output) -> str:
    return f"{program.outputs.index(output)} {array_text(output)}"


def array_text(array: Array) -> str:
    """Describe an array's place in memory, without its name."""
    shape = [array.shape[dimension] for dimension in array.order]
    place = f"{array.leading or ''}{'packed' if array.packed else ''}"
    return f"{array.dtype}{shape}{place}{list(array.steps) if array.steps else ''}"


def _written_out(node: Expression, maps: Mapping[str, Stage]) -> Expression:
    """Return ``node`` without reads of ``maps``."""
    children = tuple(_written_out(child, maps) for child in node.children)
    match node:
        case Read(name, _, None) if name in maps:
            return maps[name].body.at(dict(zip(maps[name].axes, children, strict=True)))
    return node.with_children(children)


def reached(stages: dict[str, NormalStage], names: Sequence[str]) -> dict[str, NormalStage]:
    """Collect the stages that the stages ``names`` need."""
    found: dict[str, NormalStage] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in stages and name not in found:
            found[name] = stages[name]
            waiting += _reads(stages[name].body)
    return found


def _reads(form: Form) -> Iterator[str]:
    if form.label == "read":
        yield form.name
    for child in form.children:
        yield from _reads(child)
