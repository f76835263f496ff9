"""Levels at which a kernel divides its work, as data.

They are blocks, warps and lanes, or cores; the loops of the kernel where most statements run; and
registers, vectors and memories.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from math import isfinite, prod
from typing import TYPE_CHECKING, Any

from tilewright.scheduler.cli.output import percent
from tilewright.scheduler.cli.text import counted
from tilewright.scheduler.report.figure import Picture
from tilewright.scheduler.report.outline import Form, Line, outline

if TYPE_CHECKING:
    from tilewright.scheduler.report.material import Material
    from tilewright.spaces.kernel import Kernel, Launch
    from tilewright.spaces.schedule import Schedule

WARP = 32
MEMORIES = {
    False: ("registers of a core", "L1 cache of a core", "L2 cache of a core", "L3 cache"),
    True: ("registers of a thread", "shared memory of a block", "L2 cache by a block", "L2 cache"),
}
"""Names of memories on a CPU and on a GPU, the nearest first."""
UNKNOWN_TURNS = 16  # how many turns a loop is taken to have whose text has no number
MOST_LOOPS = 12
FLOAT_BYTES = 4
_WORKERS = re.compile(r"->parallel\([^,]*, (\d+),")


class Spread(StrEnum):
    """The way a level divides its work: among parts side by side, in turns one after the other, or
    not at all: it is a memory that is filled."""

    SIDE_BY_SIDE = "side by side"
    IN_TURN = "in turn"
    FILLED = "filled"


@dataclass(frozen=True)
class Level:
    """One level: ``count`` parts, None where the text has no number, or a ``share`` of a memory.
    ``line`` is that of a loop in the source, from 1."""

    name: str
    spread: Spread
    detail: str
    count: int | None = None
    share: float | None = None
    line: int | None = None


@dataclass(frozen=True)
class Levels(Picture):
    """The levels of one kernel, the outermost first."""

    levels: tuple[Level, ...]

    @property
    def count(self) -> int:
        """There are no points."""
        return 0

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing is known of the kernel."""
        return not self.levels


def mapping(material: Material) -> Levels:
    """Show how the best kernel divides its work, level by level."""
    found = Levels("mapping", "How the best divides its work", "no kernel of today's templates", ())
    if not material.kernels:
        return found
    schedule, kernel = material.kernels[0]
    nest = Nest(kernel)
    levels = (*_outside(material, nest), *nest.loops(), *_memories(material, schedule))
    caption = (
        f"the best, from the whole down to one vector or thread: {counted(len(levels), 'level')}"
    )
    return replace(found, caption=caption, levels=levels)


class Nest:
    """The loops of a kernel in which most statements run, found through its functions."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._lines = outline(kernel.source.body, kernel.call.entry)
        self._inside: dict[int | None, list[int]] = {}
        self._functions: dict[str, int] = {}
        self._weights: dict[int, float] = {}
        for place, line in enumerate(self._lines):
            if not line.continues and line.form is not Form.NOTE:
                self._inside.setdefault(line.parent, []).append(place)
                if line.form is Form.FUNCTION:
                    self._functions.setdefault(line.name, place)

    @cached_property
    def launch(self) -> Launch | None:
        """The launch whose blocks run most; None on a CPU."""
        call = self._kernel.call
        return max(
            call.launches,
            key=lambda each: prod(each.grid) * self._weight_of(call.function(each)),
            default=None,
        )

    @property
    def workers(self) -> int:
        """The cores that a kernel asks its runtime for."""
        found = _WORKERS.search(self._kernel.source.body)
        return int(found[1]) if found else 1

    def loops(self) -> tuple[Level, ...]:
        """Return the loops around the statements that run most, the outermost first."""
        entry = self._kernel.call.entry
        name = self._kernel.call.function(self.launch) if self.launch else entry
        return tuple(self._path(self._functions.get(name)))[:MOST_LOOPS]

    def _path(self, place: int | None) -> Iterator[Level]:
        seen: set[int] = set()
        while place is not None and place not in seen:
            seen.add(place)
            line = self._lines[place]
            if line.form is Form.LOOP:
                yield Level(
                    f"loop {line.name}".strip(),
                    Spread.IN_TURN,
                    line.words,
                    line.turns,
                    line=place + 1,
                )
            place = max(self._below(place, line), key=self._weight, default=None)

    def _below(self, place: int, line: Line) -> list[int]:
        """Return what a line opens, and the functions that it calls."""
        called = (self._functions[name] for name in line.uses if name in self._functions)
        return [*self._inside.get(place, ()), *called]

    def _weight_of(self, function: str) -> float:
        place = self._functions.get(function)
        return 1.0 if place is None else self._weight(place)

    def _weight(self, place: int) -> float:
        """Return how many statements run in a line, at most; calls count what they call."""
        if place not in self._weights:
            self._weights[place] = 0.0  # ends a recursion
            line = self._lines[place]
            inner = sum(map(self._weight, self._below(place, line)))
            turns = 1 if line.form is not Form.LOOP else (line.turns or UNKNOWN_TURNS)
            self._weights[place] = turns * (inner + (line.form is Form.STATEMENT) or 1.0)
        return self._weights[place]


def _outside(material: Material, nest: Nest) -> Iterator[Level]:
    """Yield the levels outside of a kernel's text: cores, or the grid down to lanes."""
    target: Any = material.target
    launch = nest.launch
    if launch is None:
        there = counted(target.threads, "thread") if hasattr(target, "threads") else "this target"
        yield Level("cores", Spread.SIDE_BY_SIDE, f"of {there}", nest.workers)
        return
    x, y, z = launch.grid
    sms = getattr(target, "multiprocessors", None)
    where = f", on {sms} multiprocessors" if sms else ""
    yield Level("grid", Spread.SIDE_BY_SIDE, f"{x} x {y} x {z} blocks{where}", x * y * z)
    if prod(launch.cluster) > 1:
        yield Level("cluster", Spread.SIDE_BY_SIDE, "blocks", prod(launch.cluster))
    threads = prod(launch.block)
    yield Level("warps", Spread.SIDE_BY_SIDE, f"{threads} threads of a block", -(-threads // WARP))
    yield Level("lanes", Spread.SIDE_BY_SIDE, "threads of a warp", min(WARP, threads))


def _memories(material: Material, schedule: Schedule) -> Iterator[Level]:
    """Yield how full registers and memories are, by what the template says of a schedule."""
    space, target = material.space, material.target
    if space is None:
        return
    found = space.quantities(space.rows([schedule]))
    known = {name: float(values[0]) for name, values in found.items()}
    gpu = target.kind == "cuda"
    if vector := getattr(target, "vector_bytes", None):
        lanes = vector // FLOAT_BYTES
        yield Level("vectors", Spread.SIDE_BY_SIDE, f"float32 of {vector} bytes", lanes)
    used = {
        "register": f"{known['registers']:.0f} registers, ",
        "near": f"{known['near_footprint'] / 1024:.1f} KiB, ",
        "middle": f"{known['middle_footprint'] / 1024:.1f} KiB, ",
        "far": "",
    }
    for (memory, detail), name in zip(used.items(), MEMORIES[gpu], strict=True):
        share = known[f"{memory}_fraction"]
        if isfinite(share) and share > 0:
            yield Level(name, Spread.FILLED, f"{detail}{percent(share)} in use", share=share)
