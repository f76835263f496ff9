"""Graphs of symbolic sizes: copies whose sizes are numbers, and what the programs of a region in
several copies have in common.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from sympy import prime
from torch import Tensor, fx
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from tilewright.scheduler.torch.kernels.open_keys import LINE
from tilewright.scheduler.torch.translation.attention import NAMES as ATTENTION
from tilewright.scheduler.torch.translation.attention import lengths
from tilewright.scheduler.torch.translation.nodes import name_of

LARGER_COPIES = 2
"""Further copies of a graph, with larger sizes: what depends on sizes shows there."""
_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
_DECLARED = re.compile(r"(\w+: \w+\[)([^\]]*)(\].*)")
_AXIS = re.compile(r"(\w+)=(\d+)")
Values = Mapping[Any, int]
"""The value of each symbol."""


@dataclass(frozen=True)
class Fixed:
    """A copy of a graph with a value for each symbol, and its ``nodes`` by those of the graph. It
    lacks the nodes that compute numbers."""

    graph: fx.Graph
    nodes: Mapping[fx.Node, fx.Node]

    @property
    def origin(self) -> dict[fx.Node, fx.Node]:
        """The nodes of the graph by those of the copy."""
        return {made: node for node, made in self.nodes.items()}


def hints_of(graph: fx.Graph) -> dict[Any, int]:
    """Return the value with which each symbol of a graph was captured; none if there is a symbol
    whose value depends on the elements of a tensor."""
    found: dict[Any, int] = {}
    for given in _symbolic(graph):
        environment = given.node.shape_env
        known = getattr(environment, "backed_var_to_val", None) or environment.var_to_val
        for symbol in given.node.expr.free_symbols - found.keys():
            if symbol not in known:
                return {}
            found[symbol] = int(known[symbol])
    return found


def within(graph: fx.Graph, symbol: Any, span: range) -> range:
    """Return the part of a span of values of a symbol that the graph may be called with, as far as
    the range is known in which the symbol is."""
    known = _environment(graph).var_to_range.get(symbol)
    if known is None:
        return span
    least, most = max(span.start, known.lower), min(span.stop - 1, known.upper)
    return range(int(least), int(most) + 1)


def admits(graph: fx.Graph, values: Values) -> bool:
    """Tell whether what the graph was captured under is true for these values of its symbols: calls
    of others are not given to it, and it may read beyond its inputs there."""
    environment = _environment(graph)
    conditions = [guard.expr.xreplace(environment.replacements) for guard in environment.guards]
    about = [each for each in conditions if each.free_symbols & values.keys()]
    return all(str(each.xreplace(values)) == "True" for each in about)


def _environment(graph: fx.Graph) -> Any:
    """Return what torch knows about the symbols of a graph that has some."""
    return next(_symbolic(graph)).node.shape_env


def copies(graph: fx.Graph, hints: Values) -> list[Fixed]:
    """Return the copy with the sizes that the graph was captured with, and some of larger sizes.
    These are the former times primes from 5 on, another one for each copy and each symbol that is
    not equal to another one."""
    first = _first_of_equal(graph)
    places = {symbol: place for place, symbol in enumerate(hints)}
    larger = [
        {
            symbol: hint * prime(3 + copy + LARGER_COPIES * places[first.get(symbol, symbol)])
            for symbol, hint in hints.items()
        }
        for copy in range(LARGER_COPIES)
    ]
    return [fixed(graph, values) for values in (hints, *larger)]


def _first_of_equal(graph: fx.Graph) -> dict[Any, Any]:
    """Return the symbols that are equal to another one wherever the graph computes anything, each
    with the first one of its equals: attention has as many values as keys."""
    found: dict[Any, Any] = {}
    for node in graph.nodes:
        if name_of(node) not in ATTENTION:
            continue
        extents = [each.node.expr for each in lengths(node) if isinstance(each, _SYMBOLIC)]
        if len(extents) < 2:
            continue
        keys, values = (each.xreplace(found) for each in extents)
        symbols = sorted((keys - values).free_symbols, key=str)
        if len(symbols) == 2 and (keys - values).xreplace({symbols[1]: symbols[0]}) == 0:
            found = {each: symbols[0] if at == symbols[1] else at for each, at in found.items()}
            found[symbols[1]] = symbols[0]
    return found


def fixed(graph: fx.Graph, values: Values) -> Fixed:
    """Return a copy of a graph with these values of its symbols."""
    mode = next((v.fake_mode for v in _values(graph) if isinstance(v, FakeTensor)), None)
    assert mode is not None
    made, nodes, numbers = fx.Graph(graph.owning_module), dict[fx.Node, fx.Node](), dict[Any, Any]()

    def concrete(given: Any) -> Any:
        if isinstance(given, Tensor):
            with mode:
                return _with_numbers(given, values)
        return number_of(given, values)

    for node in graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, _SYMBOLIC):
            numbers[node] = number_of(value, values)
            continue
        new = made.node_copy(node, lambda each: numbers.get(each, nodes.get(each)))
        new.args, new.kwargs = pytree.tree_map_only(_SYMBOLIC, concrete, (new.args, new.kwargs))
        new.meta = {**node.meta, "val": pytree.tree_map(concrete, value)}
        nodes[node] = new
    return Fixed(made, nodes)


def number_of(given: Any, values: Values) -> Any:
    """Return a number; of a symbolic one that of these values of its symbols."""
    if not isinstance(given, _SYMBOLIC):
        return given
    found = given.node.expr.xreplace(values)
    kinds = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}
    return kinds[type(given)](found)


def _with_numbers(tensor: Tensor, values: Values) -> Tensor:
    """Return a tensor without values whose sizes are numbers."""
    numbers = (*tensor.shape, *tensor.stride(), tensor.storage_offset())
    if not any(isinstance(each, _SYMBOLIC) for each in numbers):
        return tensor
    found = [number_of(each, values) for each in numbers]
    rank = tensor.dim()
    shape, strides, offset = found[:rank], found[rank:-1], found[-1]
    if not offset:
        return torch.empty_strided(shape, strides, dtype=tensor.dtype, device=tensor.device)
    size = offset + span_of(shape, strides)
    memory = torch.empty(size, dtype=tensor.dtype, device=tensor.device)
    return memory.as_strided(shape, strides, offset)


def span_of(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Return the elements of memory from the first to the last one of a tensor. They may be fewer
    than the tensor's own, as those of an expanded one."""
    if not all(shape):
        return 0
    return 1 + sum((extent - 1) * step for extent, step in zip(shape, strides, strict=True))


def _values(graph: fx.Graph) -> Iterator[Any]:
    for node in graph.nodes:
        yield from pytree.tree_leaves(node.meta.get("val"))


def _symbolic(graph: fx.Graph) -> Iterator[Any]:
    """Yield all symbolic numbers that say what a graph computes."""
    for value in _values(graph):
        if isinstance(value, Tensor):
            numbers = (*value.shape, *value.stride(), value.storage_offset())
            yield from (each for each in numbers if isinstance(each, _SYMBOLIC))
        elif isinstance(value, _SYMBOLIC):
            yield value


# -- programs ------------------------------------------------------------------------------------


def open_text(texts: Sequence[str]) -> str | None:
    """Return what the texts of a program at several sizes have in common: as an open key, or as
    they are where they are equal. None where they differ by more than the extent of one axis."""
    first, *_ = texts
    if all(text == first for text in texts):
        return first
    lines = [text.splitlines() for text in texts]
    if len({len(each) for each in lines}) > 1 or not first.startswith("axes "):
        return None
    axes = [dict(_AXIS.findall(each[0])) for each in lines]
    open_axes = [axis for axis in axes[0] if len({each.get(axis) for each in axes}) > 1]
    if len(open_axes) != 1 or any(each.keys() != axes[0].keys() for each in axes):
        return None
    (axis,) = open_axes
    extents = tuple(each[axis] for each in axes)
    closed = [f"{name}={extent}" for name, extent in axes[0].items() if name != axis]
    found = [f"axes {', '.join([f'{axis}=*', *closed])}"]
    for written in zip(*(each[1:] for each in lines), strict=True):
        line = written[0] if len(set(written)) == 1 else _open_line(written, axis, extents)
        if line is None:
            return None
        found.append(line)
    return LINE.join(found)


def why_no_open_text(texts: Sequence[str]) -> str:
    """Say why :func:`open_text` finds nothing that the texts of a program have in common."""
    axes = [dict(_AXIS.findall(text.splitlines()[0])) for text in texts]
    count = sum(len({each.get(name) for each in axes}) > 1 for name in axes[0])
    if count > 1:
        return f"{count} axes of its program have a dynamic size; kernels take that of one"
    return "its program depends on a dynamic size"


def _open_line(written: Sequence[str], axis: str, extents: tuple[str, ...]) -> str | None:
    """Return the declaration of an array with the axis in the place of its extents."""
    found = [_DECLARED.fullmatch(each) for each in written]
    parts = [each.groups() for each in found if each is not None]
    if len(parts) < len(written) or len({(head, tail) for head, _, tail in parts}) > 1:
        return None
    head, _, tail = parts[0]
    columns = list(zip(*(shape.split(", ") for _, shape, _ in parts), strict=True))
    if any(len(set(each)) > 1 and each != extents for each in columns):
        return None
    words = [axis if each == extents else each[0] for each in columns]
    return f"{head}{', '.join(words)}{tail}"
