"""Task mappings: which worker does which tasks, in which order.

A mapping takes each of ``num_workers`` workers to an ordered list of tasks, points of a grid of
``task_shape``. Two atoms, ``spatial`` (tasks side by side, one a worker) and ``repeat`` (tasks one
after the other on one worker), and one operator, ``*``, say all that this project schedules:
blocks, warps, threads, cores, lanes and register tiles are all workers. The idea is that of
Hidet (Ding et al., ASPLOS 2023, section 4); ``spaces.algebra.mapping_emit`` writes a mapping as C.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import TypedDict, Unpack

from tilewright.spaces.algebra.index import Index

REMEMBERED = 1024  # products and grids, since kernels of one space share most of theirs
Task = tuple[int, ...]
Digits = tuple[tuple[int | None, int], ...]
"""A mixed-radix number, slowest digit first: ``(rank it counts along, how many)``; the rank is
None for a digit that a projection dropped."""


class Options(TypedDict, total=False):
    """Say how a mapping is written; see ``spaces.algebra.mapping_emit.each``."""

    extents: Sequence[int | str | None] | None
    base: Sequence[Index | int | str] | None
    prefix: str
    unroll: int | bool
    integer: str


@dataclass(frozen=True)
class TaskMapping(ABC):
    """Worker to ordered list of tasks: ``num_workers`` workers share a grid of ``task_shape``.

    Equal when made of equal atoms.
    ``f * g`` hands each task of ``f`` to ``g`` as a block of smaller tasks: shapes and workers
    multiply, and worker ``w`` does what ``f`` gives to ``w // g.num_workers`` and, within it, what
    ``g`` gives to ``w % g.num_workers``. It is associative, not commutative.
    """

    task_shape: tuple[int, ...]
    num_workers: int

    @property
    @abstractmethod
    def atoms(self) -> tuple[Spatial | Repeat, ...]:
        """The atoms this is a product of, outermost first."""

    @abstractmethod
    def _tasks(self, worker: int) -> Iterator[Task]: ...

    @abstractmethod
    def project(self, keep: Sequence[int]) -> TaskMapping:
        """Return the mapping as seen from the ranks in ``keep`` (in that order): the same workers,
        each with the distinct shadows of its tasks in order of first appearance.

        Workers that differ in dropped ranks only get the same tasks: the threads of a block
        that share the rows of A, say.
        """

    @property
    def rank(self) -> int:
        """Number of dimensions of the grid."""
        return len(self.task_shape)

    def tasks(self, worker: int, extents: Sequence[int] | None = None) -> list[Task]:
        """List the tasks of ``worker``, in order; without tasks at or past ``extents`` if given."""
        if not 0 <= worker < self.num_workers:
            raise ValueError(f"worker {worker} is not in range({self.num_workers})")
        tasks = list(self._tasks(worker))
        if extents is None:
            return tasks
        if len(extents) != self.rank:
            raise ValueError(f"extents {extents} must have rank {self.rank}")
        return [t for t in tasks if all(i < n for i, n in zip(t, extents, strict=True))]

    def __mul__(self, inner: TaskMapping) -> TaskMapping:
        if self.rank != inner.rank:
            raise ValueError(f"ranks differ: {self.task_shape} * {inner.task_shape}")
        return _composed((*self.atoms, *inner.atoms))

    def emit(
        self,
        worker: Index | int | str,
        lines: Callable[[tuple[Index, ...]], Sequence[str]],
        language: str = "c",
        **options: Unpack[Options],
    ) -> list[str]:
        """C lines that run ``lines`` for each task of ``worker``; see
        ``spaces.algebra.mapping_emit``.
        """
        from tilewright.spaces.algebra.mapping_emit import emit

        return emit(self, worker, lines, language, **options)


@dataclass(frozen=True)
class Spatial(TaskMapping):
    """One task a worker; the worker's number, read as ``digits``, is its task."""

    digits: Digits

    @property
    def atoms(self) -> tuple[Spatial | Repeat, ...]:
        """Itself."""
        return (self,)

    def _tasks(self, worker: int) -> Iterator[Task]:
        task = [0] * self.rank
        for rank, extent in reversed(self.digits):
            worker, digit = divmod(worker, extent)
            if rank is not None:
                task[rank] = digit
        yield tuple(task)

    def project(self, keep: Sequence[int]) -> Spatial:
        """Return the workers keep their number; the dropped digits of it say nothing."""
        shape = tuple(self.task_shape[r] for r in keep)
        return Spatial(shape, self.num_workers, _renumbered(self.digits, keep))

    def __str__(self) -> str:
        return _call("spatial", self.task_shape, self.digits)


@dataclass(frozen=True)
class Repeat(TaskMapping):
    """A mapping of all tasks to one worker, counted by ``digits``: the last digit runs fastest."""

    digits: Digits

    @property
    def atoms(self) -> tuple[Spatial | Repeat, ...]:
        """Itself."""
        return (self,)

    def _tasks(self, worker: int) -> Iterator[Task]:
        for numbers in product(*(range(extent) for _, extent in self.digits)):
            task = [0] * self.rank
            for (rank, _), number in zip(self.digits, numbers, strict=True):
                if rank is not None:
                    task[rank] = number
            yield tuple(task)

    def project(self, keep: Sequence[int]) -> Repeat:
        """Loops along dropped ranks are gone."""
        shape = tuple(self.task_shape[r] for r in keep)
        digits = _renumbered(self.digits, keep)
        return Repeat(shape, 1, tuple(digit for digit in digits if digit[0] is not None))

    def __str__(self) -> str:
        return _call("repeat", self.task_shape, self.digits)


@dataclass(frozen=True)
class Composition(TaskMapping):
    """The product of two or more atoms, kept flat: ``(f * g) * h == f * (g * h)``."""

    factors: tuple[Spatial | Repeat, ...]

    @property
    def atoms(self) -> tuple[Spatial | Repeat, ...]:
        """The factors."""
        return self.factors

    def _tasks(self, worker: int) -> Iterator[Task]:
        choices = []
        for factor in reversed(self.factors):
            worker, own = divmod(worker, factor.num_workers)
            choices.append(factor.tasks(own))
        for chosen in product(*reversed(choices)):
            task = [0] * self.rank
            for factor, step in zip(self.factors, chosen, strict=True):
                task = [t * n + s for t, n, s in zip(task, factor.task_shape, step, strict=True)]
            yield tuple(task)

    def project(self, keep: Sequence[int]) -> Composition:
        """Return the product of the projected factors."""
        return _composed(tuple(factor.project(keep) for factor in self.factors))

    def __str__(self) -> str:
        return " * ".join(map(str, self.factors))


def spatial(*shape: int, order: Sequence[int] | None = None) -> Spatial:
    """Return one task a worker on a grid of ``shape``; workers are numbered row-major over
    ``order``, the ranks from slowest to fastest (default: as they stand)."""
    return Spatial(shape, prod(shape), _digits(shape, None if order is None else tuple(order)))


def repeat(*shape: int, order: Sequence[int] | None = None) -> Repeat:
    """Give all tasks of a grid of ``shape`` to one worker, row-major over ``order``."""
    return Repeat(shape, 1, _digits(shape, None if order is None else tuple(order)))


@lru_cache(maxsize=REMEMBERED)
def _composed(factors: tuple[Spatial | Repeat, ...]) -> Composition:
    shapes = zip(*(factor.task_shape for factor in factors), strict=True)
    workers = prod(factor.num_workers for factor in factors)
    return Composition(tuple(prod(extents) for extents in shapes), workers, factors)


@lru_cache(maxsize=REMEMBERED)
def _digits(shape: tuple[int, ...], order: tuple[int, ...] | None) -> Digits:
    if not shape or any(extent < 1 for extent in shape):
        raise ValueError(f"shape {shape}: a mapping needs ranks, and tasks along each")
    ranks = range(len(shape)) if order is None else order
    if sorted(ranks) != list(range(len(shape))):
        raise ValueError(f"order {order} is no permutation of the ranks of {shape}")
    return tuple((rank, shape[rank]) for rank in ranks)


def _renumbered(digits: Digits, keep: Sequence[int]) -> Digits:
    """Return the digits with kept ranks counted anew, and None for the others."""
    if not keep or len(set(keep)) != len(keep):
        raise ValueError(f"ranks to keep must be distinct, and at least one: {keep}")
    return tuple((keep.index(r) if r in keep else None, extent) for r, extent in digits)


def _call(name: str, shape: tuple[int, ...], digits: Digits) -> str:
    order = [rank for rank, _ in digits]
    extra = "" if order == sorted(range(len(shape))) else f", order={order}"
    return f"{name}({', '.join(map(str, shape))}{extra})"
