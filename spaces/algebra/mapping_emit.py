"""Task mappings as C: the only place where loops and index arithmetic are written.

A worker's spatial parts become divisions and remainders of its number, its repeats become loops.
Where tasks may lie past the extents, a rolled loop ends early; where there is no rolled loop (a
spatial rank, an unrolled loop), an ``if`` guards the tasks, as far out as its indices are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Unpack

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.mapping import REMEMBERED, Options, Repeat, TaskMapping
from tilewright.spaces.kernels.body import Body
from tilewright.spaces.kernels.statements import Lines, Loop
from tilewright.spaces.kernels.text import PRINTERS

Inside = Callable[[tuple[Index, ...]], None]


def emit(
    mapping: TaskMapping,
    worker: Index | int | str,
    lines: Callable[[tuple[Index, ...]], Sequence[str]],
    language: str = "c",
    **options: Unpack[Options],
) -> list[str]:
    """C lines that run those of ``lines(indices)`` for each task; see :func:`each`. Of templates
    that write no statements yet."""
    body = Body(given=None)
    loop = f"for ({options.get('integer', 'long')} "

    def inside(at: tuple[Index, ...]) -> None:
        found = lines(at)
        if any(f"{loop}{name} = 0" in "\n".join(found) for name in body.names):
            raise NameError(f"the prefix {options.get('prefix', 'i')!r} is taken inside")
        body.add(Lines(tuple(found)))

    each(body, mapping, worker, inside, **options)
    return PRINTERS[language].lines(body.statements)


def each(
    body: Body,
    mapping: TaskMapping,
    worker: Index | int | str,
    inside: Inside,
    *,
    extents: Sequence[int | str | None] | None = None,
    base: Sequence[Index | int | str] | None = None,
    prefix: str = "i",
    unroll: int | bool = False,
    integer: str = "long",
) -> None:
    """Write what ``inside(indices)`` writes for each task of ``worker``, in order.

    ``indices`` are the task's coordinates plus ``base``; they print as C expressions and take part
    in further index arithmetic. Tasks at or past ``extents`` (of rank None: unlimited) are left
    out. ``worker`` is a C expression in ``range(mapping.num_workers)``.

    Loop variables are ``prefix0``, ``prefix1``, ... of the signed type ``integer``; loops inside
    need another prefix. ``unroll=True`` writes every task out, with constant indices; a number asks
    the compiler to unroll by it.
    """
    rank = mapping.rank
    limits = tuple(extents) if extents is not None else (None,) * rank
    if len(limits) != rank or (base is not None and len(base) != rank):
        raise ValueError(f"extents {extents} and base {base} must have rank {rank}")
    writer = _Writer(body, inside, limits, unroll, integer)
    number = _worker(worker, mapping.num_workers, integer)
    position, loops = _start_and_loops(mapping, number, prefix)
    if base is not None:
        position = tuple(index(b) + start for b, start in zip(base, position, strict=True))
    writer.write(loops, position, frozenset(r for r in range(rank) if limits[r] is not None))


def only_task(mapping: TaskMapping, worker: Index) -> tuple[Index, ...]:
    """Return the indices of the one task that each worker of a mapping without repeats has."""
    start, loops = _start_and_loops(mapping, worker, "")
    if loops:
        raise ValueError(f"{mapping} has several tasks a worker")
    return start


@dataclass(frozen=True)
class _Loop:
    """A loop of ``size`` turns, each of which moves by ``step`` along ``rank``."""

    name: str
    rank: int
    size: int
    step: int


@dataclass(frozen=True)
class _Writer:
    body: Body
    inside: Inside
    extents: tuple[int | str | None, ...]
    unroll: int | bool
    integer: str

    def write(
        self, loops: tuple[_Loop, ...], position: tuple[Index, ...], unchecked: frozenset[int]
    ) -> None:
        """Write the ``loops`` still to open, outermost first.

        ``position`` holds the indices as far as the loops already open make them; ranks in
        ``unchecked`` were not compared with their extents yet.
        """
        if unchecked:
            if any(self._misses(rank, position[rank]) for rank in unchecked):
                return
            decided = unchecked - {loop.rank for loop in loops}
            if tests := [
                f"{position[rank].text} < {_text(self.extents[rank])}"
                for rank in sorted(decided)
                if self._may_miss(rank, position[rank])
            ]:
                with self.body.when(" && ".join(tests)):
                    self.write(loops, position, unchecked - decided)
                return
        if not loops:
            self.inside(position)
        elif self.unroll is True:
            for turn in range(loops[0].size):
                self.write(loops[1:], _moved(position, loops[0], turn), unchecked)
        else:
            self._rolled(loops, position, unchecked)

    def _rolled(
        self, loops: tuple[_Loop, ...], position: tuple[Index, ...], unchecked: frozenset[int]
    ) -> None:
        loop, rest = loops[0], loops[1:]
        turns: str | int = loop.size
        clip: dict[str, str] = {}
        if not self.unroll and loop.rank in unchecked:
            last = _moved(position, loop, loop.size - 1)[loop.rank]
            if self._may_miss(loop.rank, last):
                turns, clip = self._clipped(loop, position[loop.rank])
                if all(other.rank != loop.rank for other in rest):
                    unchecked -= {loop.rank}
        if turns == 1:
            return self.write(rest, position, unchecked)
        variable = index(loop.name, turns if isinstance(turns, int) else loop.size)
        unroll = int(self.unroll) if self.unroll else None
        self.body.open(*clip, loop.name)
        self.write(rest, _moved(position, loop, variable), unchecked)
        inner, also = self.body.close(), tuple(clip.items())
        self.body.add(Loop(self.integer, loop.name, "0", str(turns), None, inner, unroll, also))

    def _clipped(self, loop: _Loop, start: Index) -> tuple[str | int, dict[str, str]]:
        """Say how many turns of the loop start inside the extent, and declarations to find out."""
        extent = self.extents[loop.rank]
        if start.value is not None and isinstance(extent, int):
            return min(loop.size, ceil_div(extent - start.value, loop.step)), {}
        left = _text(extent) if start.value == 0 else f"{_text(extent)} - {start}"
        if loop.step > 1:
            left = f"({left} + {loop.step - 1}) / {loop.step}"
        most, end = f"{loop.name}_most", f"{loop.name}_end"
        self.body.read(left)
        least = f"{most} < {loop.size} ? {most} : {loop.size}"
        return end, {most: left, end: least}

    def _may_miss(self, rank: int, position: Index) -> bool:
        """Tell whether the index may be at or past the extent."""
        extent = self.extents[rank]
        if isinstance(extent, int):
            return position.extent is None or position.extent > extent
        return extent is not None

    def _misses(self, rank: int, position: Index) -> bool:
        """Tell whether the index is surely at or past the extent."""
        extent = self.extents[rank]
        return isinstance(extent, int) and position.constant >= extent


@lru_cache(maxsize=REMEMBERED)
def _start_and_loops(
    mapping: TaskMapping, worker: Index, prefix: str
) -> tuple[tuple[Index, ...], tuple[_Loop, ...]]:
    """Return each rank's share that the worker's number decides, and the loops, outermost first."""
    start = [Index()] * mapping.rank
    steps = [1] * mapping.rank
    turns: list[tuple[int, int, int]] = []
    for atom in reversed(mapping.atoms):
        for rank, size in reversed(atom.digits):
            if isinstance(atom, Repeat):
                if rank is not None and size > 1:
                    turns.append((rank, size, steps[rank]))
                continue
            if rank is not None:
                start[rank] += worker % size * steps[rank]
            worker = worker // size
        steps = [step * extent for step, extent in zip(steps, atom.task_shape, strict=True)]
    loops = [_Loop(f"{prefix}{i}", *turn) for i, turn in enumerate(reversed(turns))]
    return tuple(start), tuple(loops)


def _worker(worker: Index | int | str, count: int, integer: str) -> Index:
    """The worker's number, signed: CUDA's ``threadIdx.x`` is not, and ``extent - x`` would wrap."""
    if isinstance(worker, str) and not worker.isidentifier() and not worker.isdigit():
        plain = all(word.isidentifier() for word in worker.split("."))
        worker = f"({integer}){worker}" if plain else f"({integer})({worker})"
    return index(worker, extent=count)


def _moved(position: tuple[Index, ...], loop: _Loop, turn: Index | int) -> tuple[Index, ...]:
    moved = list(position)
    moved[loop.rank] += turn * loop.step
    return tuple(moved)


def _text(extent: int | str | None) -> str:
    """Return an extent as C text that is safe inside any expression."""
    return str(extent) if isinstance(extent, int) else str(index(extent or "0"))


def indented(lines: Sequence[str]) -> list[str]:
    """C lines within a block."""
    return [f"  {line}" for line in lines]
