"""CUDA graphs of one model for several sizes, which share memory and, where they can, executables.

Each size is captured when it is first called, the largest of all before any other, so that the
others fit into the memory that it took. Graphs with equal kernels share an executable, whose
parameters are set to those of the size that is launched. CUDA replays an executable 3 to 5 % slower
once its parameters were set, so a size that stays gets an executable of its own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor
from torch.utils import _pytree as pytree

from tilewright.spaces.errors import InputError, shown

STAYS = 32
"""Launches of one size in a row, after which it is expected to be launched as often again. So many
replays gain what instantiating a graph takes (3 to 4 ms for 32 layers on an H200)."""


@dataclass(frozen=True)
class Captured:
    """A graph that was captured, what it writes, and the bytes that it added to the pool."""

    graph: Any
    outputs: Any
    bytes: int


class Driver(Protocol):
    """The operations on CUDA graphs that are needed; all captures of a driver share a pool."""

    def capture(self, call: Callable[[], Any]) -> Captured:
        """Run a call once and record what it launches."""
        ...

    def instantiate(self, graph: Any) -> tuple[Any, int]:
        """Make an executable of a graph, and say how many bytes it takes."""
        ...

    def update(self, executable: Any, graph: Any) -> bool:
        """Let an executable launch another graph of the same kernels; False if they differ."""
        ...

    def launch(self, executable: Any) -> None:
        """Launch what an executable was made or updated for."""
        ...

    def free(self, what: Any) -> None:
        """Give up a graph or an executable."""
        ...


@dataclass(eq=False)
class _Executable:
    handle: Any
    bytes: int
    size: int
    """The size whose parameters it has; 0 if that is not known."""
    sizes: set[int]
    """The sizes that share it."""
    is_updated: bool = False
    """True once its parameters were set after it was instantiated."""
    in_a_row: int = 0
    """Launches since then."""


@dataclass(frozen=True)
class _Entry:
    captured: Captured
    executable: _Executable


class Graphs:
    """A model as a function that replays a graph for each of its sizes; :func:`graphs` makes it."""

    def __init__(
        self,
        compiled: Callable[..., Any],
        sizes: Sequence[int],
        memory: int | None,
        driver: Driver,
    ) -> None:
        self._compiled, self._sizes, self._memory = compiled, sorted(set(sizes)), memory
        self._driver = driver
        self._entries: OrderedDict[int, _Entry] = OrderedDict()  # the last used one is last
        self._buffers: list[Tensor] = []

    @property
    def captured(self) -> tuple[int, ...]:
        """The sizes that have a graph, the least recently used first."""
        return tuple(self._entries)

    @property
    def executables(self) -> int:
        """The number of executables, which graphs of equal kernels share."""
        return len({id(entry.executable) for entry in self._entries.values()})

    @property
    def bytes(self) -> int:
        """Bytes of all graphs and executables."""
        executables = {id(e.executable): e.executable.bytes for e in self._entries.values()}
        return sum(e.captured.bytes for e in self._entries.values()) + sum(executables.values())

    def __call__(self, *inputs: Tensor) -> Any:
        """Copy the inputs to where the graph of their size reads them, replay it, and return copies
        of its outputs. Without a graph for the size the model itself is called."""
        size = inputs[0].shape[0] if inputs and inputs[0].dim() else None
        if size not in self._sizes:
            return self._compiled(*inputs)
        self._make_buffers(inputs, size)
        for place, view in enumerate(self._views(size)):
            view.copy_(inputs[place])
        entry = self._entry(size)
        self._launch(entry, size)
        return pytree.tree_map_only(Tensor, Tensor.clone, entry.captured.outputs)

    # -- graphs --------------------------------------------------------------------------------

    def _entry(self, size: int) -> _Entry:
        """Return the graph of a size, captured if it is new; others are dropped where memory is
        short."""
        if not self._entries and size != self._sizes[-1]:
            self._capture(self._sizes[-1])
        if size not in self._entries:
            self._capture(size)
        self._entries.move_to_end(size)
        executable = self._entries[size].executable
        if executable.is_updated and executable.size == size and executable.in_a_row >= STAYS:
            self._instantiate_anew(size)
        while self._memory is not None and self.bytes > self._memory and len(self._entries) > 1:
            self._drop(next(iter(self._entries)))
        return self._entries[size]

    def _capture(self, size: int) -> None:
        views = self._views(size)
        made = self._driver.capture(lambda: self._compiled(*views))
        executable = self._shared(made.graph, size) or self._new(made.graph, size)
        executable.sizes.add(size)
        self._entries[size] = _Entry(made, executable)

    def _shared(self, graph: Any, size: int) -> _Executable | None:
        """Return the executable of the nearest size, if it has the same kernels."""
        nearest = min(self._entries, key=lambda other: abs(other - size), default=None)
        if nearest is None:
            return None
        executable = self._entries[nearest].executable
        return executable if self._update(executable, graph, size) else None

    def _new(self, graph: Any, size: int) -> _Executable:
        handle, bytes = self._driver.instantiate(graph)
        return _Executable(handle, bytes, size, set())

    def _launch(self, entry: _Entry, size: int) -> None:
        executable = entry.executable
        graph = entry.captured.graph
        if executable.size != size and not self._update(executable, graph, size):
            raise RuntimeError(f"the graph of size {size} no longer fits its executable")
        executable.in_a_row += 1
        self._driver.launch(executable.handle)

    def _update(self, executable: _Executable, graph: Any, size: int) -> bool:
        """Set the parameters of an executable to those of a graph; False if its kernels differ."""
        fits = self._driver.update(executable.handle, graph)
        executable.size = size if fits else 0  # who refuses an update may have begun it
        executable.is_updated, executable.in_a_row = True, 0
        return fits

    def _instantiate_anew(self, size: int) -> None:
        """Give a size an executable of its own, or one that is new if the graph itself is it."""
        captured, shared = self._entries[size].captured, self._entries[size].executable
        own = self._new(captured.graph, size)
        if own.handle is shared.handle:
            own.sizes, own.bytes = set(shared.sizes), max(own.bytes, shared.bytes)
        else:
            own.sizes = {size}
        for each in own.sizes & self._entries.keys():
            self._entries[each] = _Entry(self._entries[each].captured, own)
        shared.sizes -= own.sizes
        if not shared.sizes and own.handle is not shared.handle:
            self._driver.free(shared.handle)

    def _drop(self, size: int) -> None:
        entry = self._entries.pop(size)
        executable, graph = entry.executable, entry.captured.graph
        executable.sizes.discard(size)
        if not executable.sizes:
            self._driver.free(executable.handle)
        if graph is not executable.handle:  # else it stays as long as others launch it
            self._driver.free(graph)

    # -- inputs --------------------------------------------------------------------------------

    def _make_buffers(self, inputs: Sequence[Tensor], size: int) -> None:
        """Make memory for inputs of the largest size, once."""
        if not self._buffers:
            largest = self._sizes[-1]
            shapes = [(largest, *_rest(each, size)) for each in inputs]
            self._buffers = [
                each.new_zeros(shape) for each, shape in zip(inputs, shapes, strict=True)
            ]
        if len(inputs) != len(self._buffers):
            raise InputError(f"{len(inputs)} inputs are given; allowed: {len(self._buffers)}")
        for each, buffer in zip(inputs, self._buffers, strict=True):
            if _rest(each, size) != buffer.shape[1:] or each.dtype != buffer.dtype:
                raise InputError(
                    f"an input is {each.dtype} of shape {tuple(each.shape)}; allowed: "
                    f"{buffer.dtype} of shape {(size, *buffer.shape[1:])}"
                )

    def _views(self, size: int) -> list[Tensor]:
        return [buffer[:size] for buffer in self._buffers]


def _rest(tensor: Tensor, size: int) -> tuple[int, ...]:
    """Return the extents of an input after the first, which is the size."""
    if tensor.dim() == 0 or tensor.shape[0] != size:
        raise InputError(
            f"an input has shape {tuple(tensor.shape)}; allowed: {size} in its first dimension, "
            "as in that of the first input"
        )
    return tuple(tensor.shape[1:])


def graphs(
    compiled: Callable[..., Any],
    sizes: Sequence[int],
    memory: int | None = None,
    driver: Driver | None = None,
) -> Graphs:
    """Replay CUDA graphs of a compiled model, one for each of ``sizes``: extents that the first
    dimension of all its inputs may have.

    Example::

        fast = graphs(torch.compile(model, backend="tilewright"), range(1, 65), memory=2**30)
        y = fast(x)  # a replay, if x has 1 to 64 rows

    Beyond ``memory`` bytes the least recently used graphs are dropped, and captured again when they
    are called. Raises :class:`InputError` for sizes below 1, and for inputs that differ in more
    than their size.
    """
    wrong = [size for size in sizes if type(size) is not int or size < 1]
    if wrong or not sizes:
        raise InputError(f"sizes={shown(list(sizes))}; allowed: whole numbers from 1 on")
    if memory is not None and (type(memory) is not int or memory < 1):
        raise InputError(f"memory={shown(memory)}; allowed: bytes, or None for no limit")
    if driver is None:
        from tilewright.scheduler.torch.serving.graph_driver import TorchDriver

        driver = TorchDriver()
    return Graphs(compiled, sizes, memory, driver)
