"""Pieces of a graph compiled by Inductor, and what the database knows them by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import fx

from tilewright.scheduler.torch.backend.replacing import copied
from tilewright.scheduler.torch.backend.whole import aside
from tilewright.scheduler.torch.stages.running import Compiled
from tilewright.scheduler.torch.stages.units import Piece
from tilewright.scheduler.torch.translation.nodes import fake

aten: Any = torch.ops.aten
Values = Mapping[fx.Node, torch.Tensor]
"""A tensor for each node that a piece reads or gives."""
WITHOUT_THE_LOCK = (
    "[](auto... given) {{ struct Released {{ PyThreadState *state = PyEval_SaveThread(); "
    "~Released() {{ PyEval_RestoreThread(state); }} }} released; kernel(given...); }}({}); "
    "Py_RETURN_NONE;"
)
"""A call of a loop that Inductor wrote in C++, during which other threads may run Python."""


def compiled(
    piece: Piece, values: Values, threads: int, strides: Mapping[fx.Node, Sequence[int]]
) -> Compiled:
    """Return a piece as a function, for inputs that lie as ``values`` do and for so many threads of
    a CPU (0 on a GPU). Outputs that have ``strides``, dense ones, are copied to them; others lie as
    Inductor likes best."""
    from torch._inductor import config
    from torch._inductor.compile_fx import compile_fx_inner

    module = copied(piece.module)
    _lay_out(module.graph, [strides.get(node) for node in piece.outputs])
    module.recompile()  # Inductor's cache tells graphs apart by their code
    given = [
        fake(node).new_empty_strided(values[node].shape, values[node].stride())
        for node in piece.inputs
    ]
    patches = {"cpp.threads": threads} if threads else {}
    with aside(), _without_the_lock(), config.patch(patches):
        made: Compiled = compile_fx_inner(module, given, is_inference=True)
    return made


def _lay_out(graph: fx.Graph, wanted: Sequence[Sequence[int] | None]) -> None:
    """Copy outputs to where they have the strides that are wanted, if any are."""
    output = graph.output_node()
    results = list(output.args[0])
    with graph.inserting_before(output):
        for place, strides in enumerate(wanted):
            if strides is not None:
                results[place] = _laid_out(graph, results[place], strides)
    output.args = (tuple(results),)
    output.meta["user_visible_output_idxs"] = [
        place for place, strides in enumerate(wanted) if strides is not None
    ]


def _laid_out(graph: fx.Graph, node: fx.Node, strides: Sequence[int]) -> fx.Node:
    """Return a node whose dimensions are in memory as dense strides say: it is written in the order
    of memory, and seen in its own."""
    order = sorted(range(len(strides)), key=lambda dimension: -strides[dimension])
    back = [order.index(dimension) for dimension in range(len(order))]
    seen = graph.call_function(aten.permute.default, (node, order))
    plain = {"memory_format": torch.contiguous_format}
    written = graph.call_function(aten.clone.default, (seen,), plain)
    return graph.call_function(aten.permute.default, (written, back))


@contextmanager
def _without_the_lock() -> Iterator[None]:
    """Let loops that Inductor writes give Python's lock up, if this Inductor's writer is one that
    can be told so; else groups wait for each other's loops."""
    from torch._inductor import codecache

    cache: Any = getattr(codecache, "CppPythonBindingsCodeCache", None)
    known = "kernel({}); Py_RETURN_NONE;"
    if getattr(cache, "call_entry_function", None) != known:
        yield
        return
    cache.call_entry_function = WITHOUT_THE_LOCK
    try:
        yield
    finally:
        cache.call_entry_function = known


def described(piece: Piece, values: Values) -> str:
    """Return a text that equal pieces have in common: the operators with their arguments, and how
    inputs lie."""
    place = {node: number for number, node in enumerate(piece.module.graph.nodes)}
    given = dict(zip(piece.module.graph.find_nodes(op="placeholder"), piece.inputs, strict=True))
    lines = []
    for node in piece.module.graph.nodes:
        if node in given:
            lines.append(_lying(values[given[node]]))
        elif node.op == "get_attr":
            lines.append(f"constant {_lying(getattr(piece.module, str(node.target)))}")
        else:
            arguments = fx.map_arg((node.args, node.kwargs), lambda each: f"%{place[each]}")
            lines.append(f"{node.target}{arguments}")
    return "; ".join(lines)


def _lying(tensor: torch.Tensor) -> str:
    return f"{tensor.dtype}{tuple(tensor.shape)}{tuple(tensor.stride())}"


def lies(tensor: torch.Tensor, strides: Sequence[int]) -> bool:
    """Tell whether a tensor has these strides, as far as they matter."""
    pairs = zip(tensor.shape, tensor.stride(), strides, strict=True)
    return all(extent == 1 or own == wanted for extent, own, wanted in pairs)
