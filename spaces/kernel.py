"""The result of lowering: source code, and the calls of its functions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

from tilewright.spaces.errors import InputError

if TYPE_CHECKING:
    from tilewright.spaces.cuda.tensor_map import TensorMapSpec
    from tilewright.spaces.workloads.array import Array


class Role(StrEnum):
    """Access of a kernel to an array: it reads it, writes it, or does both in this order."""

    IN = "in"
    OUT = "out"
    IN_OUT = "in-out"


@dataclass(frozen=True)
class Argument:
    """An array that a kernel is given, and what it does with it. The dimension ``open`` of the
    array is the call's open axis; None if it does not have it."""

    array: Array
    role: Role
    open: int | None = None

    def at(self, extent: int) -> Argument:
        """Return the argument with an array of another extent of the open axis."""
        if self.open is None:
            return self
        shape = list(self.array.shape)
        shape[self.open] = extent
        return replace(self, array=replace(self.array, shape=tuple(shape)))


@dataclass(frozen=True)
class Source:
    """Text in ``language`` that defines a kernel.

    ``prelude`` holds what kernels of one translation unit can share (types, vector maths): a
    builder that puts many of them into one unit writes each distinct prelude once. ``body`` is
    the kernel's own.
    """

    language: str
    prelude: str
    body: str

    @property
    def text(self) -> str:
        """The whole translation unit of this kernel alone."""
        return f"{self.prelude}\n{self.body}"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the text, in hexadecimal: names the binary in caches."""
        return hashlib.sha256(self.text.encode()).hexdigest()


WORKSPACE = "tw.workspace"
"""The name of a kernel's scratch memory among its arrays; no operand has such a name."""


@dataclass(frozen=True)
class Buffer:
    """Memory that a function on a GPU takes a pointer to: ``bytes`` from byte ``start`` on of
    ``inside``, an array of the call or its workspace. The function calls it ``name``."""

    name: str
    inside: str
    bytes: int
    start: int = 0
    written: bool = True


@dataclass(frozen=True)
class OpenGrid:
    """The dependence of a launch's grid on the extent of the call's open axis.

    Along ``dimension`` of the grid stand ``blocks`` blocks for every ``step`` rows, or the rest of
    them, but no more than ``most``; each point of the axis has so many ``rows``.
    """

    step: int
    blocks: int = 1
    rows: int = 1
    dimension: int = 0
    most: int | None = None

    def at(self, grid: tuple[int, int, int], extent: int) -> tuple[int, int, int]:
        """Return a ``grid`` as it is for an extent of the axis."""
        x, y, z = grid
        count = -(-extent * self.rows // self.step) * self.blocks
        count = min(count, self.most or count)
        return ((count, y, z), (x, count, z), (x, y, count))[self.dimension]


@dataclass(frozen=True)
class Launch:
    """One launch of a function on a GPU: grid, block and cluster in (x, y, z), dynamic shared
    bytes, and the tensor maps that the function takes after its buffers; each names the buffer that
    it describes.

    ``entry`` is the function's name and ``buffers`` are its buffers if they are not those of the
    whole kernel. An ``early`` launch may begin while earlier ones run, once all their blocks allow
    it or have ended; it touches no memory before it has waited for them by ``tw::await_launches``.
    ``open_grid`` says how the grid depends on the extent of an open axis, if it does.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] = (1, 1, 1)
    shared_bytes: int = 0
    tensor_maps: tuple[TensorMapSpec, ...] = ()
    entry: str | None = None
    buffers: tuple[Buffer, ...] = ()
    early: bool = False
    open_grid: OpenGrid | None = None


@dataclass(frozen=True)
class Call:
    """The interface of a kernel: its functions, arguments and workspace.

    ``entry`` is the function that a CPU calls, and names the kernel among others: it differs by
    schedule. On a GPU a call is its ``launches``, one after the other, each with all arrays
    and the workspace unless it says otherwise; on a CPU there are none.
    ``arguments`` are the workload's arrays in the order the entry takes them.
    ``workspace_bytes`` of 64-byte aligned scratch memory are handed to each call. The first
    ``workspace_zeroed`` bytes of them are zero before a kernel's first call, and it must leave
    them so; the others hold anything.

    The extent of ``open_axis`` is given at each call: on a CPU by a pointer to 64 bits behind those
    of the arrays, on a GPU by a last parameter of 32 bits of every function. ``extent`` is that of
    this call, with the shapes of its arrays, its grids and tensor maps; at first the largest one,
    and 0 without an open axis. :meth:`at` gives others.
    """

    entry: str
    arguments: tuple[Argument, ...]
    workspace_bytes: int = 0
    workspace_zeroed: int = 0
    launches: tuple[Launch, ...] = ()
    open_axis: str | None = None
    extent: int = 0

    def at(self, extent: int) -> Call:
        """Return the same call with another extent of its open axis, of which ``extent`` is the
        largest so far. Raises :class:`InputError` if it has none or the number is out of range."""
        if not 1 <= extent <= self.extent:
            raise InputError(
                f"{self.open_axis or 'an axis'}={extent} is no extent of {self.entry}; allowed: "
                + (f"1 to {self.extent}" if self.extent else "none, for it has no open axis")
            )
        given = tuple(argument.at(extent) for argument in self.arguments)
        pairs = zip(self.arguments, given, strict=True)
        spans = {(old.array.name, old.array.span_bytes): new.array.span_bytes for old, new in pairs}
        launches = tuple(
            replace(launch, buffers=tuple(_with_span(b, spans) for b in launch.buffers))
            for launch in self.launches_at(extent)
        )
        return replace(self, arguments=given, launches=launches, extent=extent)

    def launches_at(self, extent: int) -> tuple[Launch, ...]:
        """Return the launches with grids and tensor maps of another extent of the open axis."""
        if extent == self.extent:
            return self.launches
        return tuple(
            replace(
                launch,
                grid=launch.open_grid.at(launch.grid, extent) if launch.open_grid else launch.grid,
                tensor_maps=tuple(spec.at(extent, self.extent) for spec in launch.tensor_maps),
            )
            for launch in self.launches
        )

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The arrays of all arguments."""
        return tuple(argument.array for argument in self.arguments)

    @property
    def read(self) -> tuple[Array, ...]:
        """The arrays that it reads."""
        return tuple(a.array for a in self.arguments if a.role is not Role.OUT)

    @property
    def written(self) -> tuple[Array, ...]:
        """The arrays that it writes."""
        return tuple(a.array for a in self.arguments if a.role is not Role.IN)

    def function(self, launch: Launch) -> str:
        """Return the name of what one of its launches starts."""
        return launch.entry or self.entry

    def buffers(self, launch: Launch) -> tuple[Buffer, ...]:
        """List the buffers whose pointers a launch takes, in order."""
        return launch.buffers or self._whole

    @cached_property
    def _whole(self) -> tuple[Buffer, ...]:
        """The arrays and the workspace."""
        whole = tuple(
            Buffer(a.array.name, a.array.name, a.array.span_bytes, written=a.role is not Role.IN)
            for a in self.arguments
        )
        scratch = Buffer(WORKSPACE, WORKSPACE, self.workspace_bytes)
        return (*whole, scratch) if self.workspace_bytes else whole


def _with_span(buffer: Buffer, spans: Mapping[tuple[str, int], int]) -> Buffer:
    """Return a buffer that is a whole array as it is at another extent; others as they are."""
    return replace(buffer, bytes=spans.get((buffer.inside, buffer.bytes), buffer.bytes))


@dataclass(frozen=True)
class Kernel:
    """One generated kernel: derived from a schedule, never stored in a database."""

    source: Source
    call: Call

    def at(self, extent: int) -> Kernel:
        """Return the same kernel with another extent of its open axis, see :meth:`Call.at`."""
        return replace(self, call=self.call.at(extent))


def arguments(inputs: Iterable[Array], outputs: Iterable[Array]) -> tuple[Argument, ...]:
    """Return the arrays that are only read, then arrays that are only written."""
    read = [Argument(array, Role.IN) for array in inputs]
    return (*read, *(Argument(array, Role.OUT) for array in outputs))
