"""Make nodes of a graph, each with the tensor without values that it gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import fx


def new_node(graph: fx.Graph, target: Callable[..., Any], *args: Any, **kwargs: Any) -> fx.Node:
    """Return a new node that calls an operator."""
    made = graph.call_function(target, args, kwargs)
    made.meta["val"] = computed(made)
    return made


def computed(node: fx.Node) -> Any:
    """Return what a node gives for what its arguments give by now, without values."""
    target: Any = node.target
    return target(*fx.map_arg(node.args, value_of), **fx.map_arg(node.kwargs, value_of))


def value_of(node: fx.Node) -> Any:
    """Return what a node gives, without values."""
    return node.meta["val"]
