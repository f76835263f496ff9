"""Task mappings as C: the only place where loops and index arithmetic are written.

A worker's spatial parts become divisions and remainders of its number, its repeats become loops.
Where tasks may lie past the extents, a rolled loop ends early; where there is no rolled loop (a
spatial rank, an unrolled loop), an ``if`` guards the tasks, as far out as its indices are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.mapping import Repeat, TaskMapping

REMEMBERED = 1024  # mappings, since kernels of one space share most of theirs

Body = Callable[[tuple[Index, ...]], Sequence[str]]


def emit(
    mapping: TaskMapping,
    worker: Index | int | str,
    body: Body,
    *,
    extents: Sequence[int | str | None] | None = None,
    base: Sequence[Index | int | str] | None = None,
    prefix: str = "i",
    unroll: int | bool = False,
    integer: str = "long",
    language: str = "c",
) -> list[str]:
    """C lines that run the lines of ``body(indices)`` for each task of ``worker``, in order.

    ``indices`` are the task's coordinates plus ``base``; they print as C expressions and take part
    in further index arithmetic. Tasks at or past ``extents`` (of rank None: unlimited) are left
    out. ``worker`` is a C expression in ``range(mapping.num_workers)``.

    Loop variables are ``prefix0``, ``prefix1``, ... of the signed type ``integer``; an emission
    inside a body needs another prefix. ``unroll=True`` writes every task out, with constant
    indices; a number asks the compiler of ``language`` (``c`` or ``cuda``) to unroll by it.
    """
    rank = mapping.rank
    limits = tuple(extents) if extents is not None else (None,) * rank
    offsets = tuple(base) if base is not None else (0,) * rank
    if len(limits) != rank or len(offsets) != rank:
        raise ValueError(f"extents {extents} and base {base} must have rank {rank}")
    pragma = {"c": "#pragma GCC unroll", "cuda": "#pragma unroll"}[language]
    writer = _Writer(body, limits, prefix, unroll, integer, pragma)
    number = _worker(worker, mapping.num_workers, integer)
    start, loops = _start_and_loops(mapping, number, prefix)
    position = tuple(index(b) + s for b, s in zip(offsets, start, strict=True))
    return writer.lines(loops, position, frozenset(range(rank)))


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
    extents: tuple[int | str | None, ...]
    prefix: str
    unroll: int | bool
    integer: str
    pragma: str

    def lines(
        self, loops: tuple[_Loop, ...], position: tuple[Index, ...], unchecked: frozenset[int]
    ) -> list[str]:
        """Return the lines for the ``loops`` still to open, outermost first.

        ``position`` holds the indices as far as the loops already open make them; ranks in
        ``unchecked`` were not compared with their extents yet.
        """
        if any(self._misses(rank, position[rank]) for rank in unchecked):
            return []
        decided = unchecked - {loop.rank for loop in loops}
        tests = [
            f"{position[rank].text} < {_text(self.extents[rank])}"
            for rank in sorted(decided)
            if self._may_miss(rank, position[rank])
        ]
        if tests:
            inner = self.lines(loops, position, unchecked - decided)
            return [f"if ({' && '.join(tests)}) {{", *indented(inner), "}"]
        if not loops:
            return list(self.body(position))
        if self.unroll is True:
            return self._written_out(loops, position, unchecked)
        return self._rolled(loops, position, unchecked)

    def _written_out(
        self, loops: tuple[_Loop, ...], position: tuple[Index, ...], unchecked: frozenset[int]
    ) -> list[str]:
        lines: list[str] = []
        for turn in range(loops[0].size):
            lines += self.lines(loops[1:], _moved(position, loops[0], turn), unchecked)
        return lines

    def _rolled(
        self, loops: tuple[_Loop, ...], position: tuple[Index, ...], unchecked: frozenset[int]
    ) -> list[str]:
        loop, rest = loops[0], loops[1:]
        clip, turns = "", index(loop.size)
        last = _moved(position, loop, loop.size - 1)[loop.rank]
        if not self.unroll and loop.rank in unchecked and self._may_miss(loop.rank, last):
            clip, turns = self._clipped(loop, position[loop.rank])
            if all(other.rank != loop.rank for other in rest):
                unchecked -= {loop.rank}
        if turns.value == 1:
            return self.lines(rest, position, unchecked)
        variable = index(loop.name, extent=turns.value or loop.size)
        inner = self.lines(rest, _moved(position, loop, variable), unchecked)
        declaration = f"for ({self.integer} {loop.name} = 0"
        if declaration in "\n".join(inner):
            raise ValueError(f"prefix {self.prefix!r} is taken by an emission inside this one")
        head = [f"{self.pragma} {int(self.unroll)}"] if self.unroll else []
        head.append(f"{declaration}{clip}; {loop.name} < {turns}; {loop.name}++) {{")
        return [*head, *indented(inner), "}"]

    def _clipped(self, loop: _Loop, start: Index) -> tuple[str, Index]:
        """Say how many turns of the loop start inside the extent, and declarations to find out."""
        extent = self.extents[loop.rank]
        if start.value is not None and isinstance(extent, int):
            return "", index(min(loop.size, -(-(extent - start.value) // loop.step)))
        left = _text(extent) if start.value == 0 else f"{_text(extent)} - {start}"
        if loop.step > 1:
            left = f"({left} + {loop.step - 1}) / {loop.step}"
        most, end = f"{loop.name}_most", f"{loop.name}_end"
        clip = f", {most} = {left}, {end} = {most} < {loop.size} ? {most} : {loop.size}"
        return clip, index(end)

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
    moved[loop.rank] += index(turn) * loop.step
    return tuple(moved)


def _text(extent: int | str | None) -> str:
    """Return an extent as C text that is safe inside any expression."""
    return str(extent) if isinstance(extent, int) else str(index(extent or "0"))


def indented(lines: Sequence[str]) -> list[str]:
    """C lines within a block."""
    return [f"  {line}" for line in lines]
