"""Facts about one node of an FX graph of ATen operators."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from torch import Tensor, fx

from tilewright.scheduler.torch.translation.gap import Gap


def name_of(node: fx.Node) -> str:
    """Return the name of the operator that a node calls, without namespace and overload, such as
    ``add``; ``getitem``, or the kind of a node that calls none."""
    if node.op != "call_function":
        return str(node.op)
    if node.target is operator.getitem:
        return "getitem"
    schema = getattr(node.target, "_schema", None)
    return str(schema.name).split("::")[-1] if schema else getattr(node.target, "__name__", "?")


def called(node: fx.Node) -> str:
    """Return the same, of a result of several the name of the operator that gives it."""
    name = name_of(node)
    return name_of(node.all_input_nodes[0]) if name == "getitem" else name


def arguments(node: fx.Node) -> dict[str, Any]:
    """Return all arguments of a node by the names of its operator's schema, defaults included."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        raise Gap(name_of(node))
    found = {a.name: a.default_value for a in schema.arguments if a.has_default_value()}
    names = [argument.name for argument in schema.arguments]
    return found | dict(zip(names, node.args, strict=False)) | dict(node.kwargs)


def reached(
    start: Iterable[fx.Node], following: Callable[[fx.Node], Iterable[fx.Node]]
) -> set[fx.Node]:
    """Return some nodes, and all that are reached from them by way of those ``following`` each."""
    found, waiting = set[fx.Node](), list(start)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += following(node)
    return found


def sources_of(node: fx.Node) -> set[fx.Node]:
    """Return a node and all that it is computed from."""
    return reached([node], lambda each: each.all_input_nodes)


def descendants(node: fx.Node) -> set[fx.Node]:
    """Return all nodes that depend on one."""
    return reached(node.users, lambda each: each.users)


def closure(node: fx.Node, inside: Collection[fx.Node]) -> set[fx.Node]:
    """Return a node, and those of ``inside`` on which it depends by way of these."""
    return reached([node], lambda each: filter(inside.__contains__, each.all_input_nodes))


def fake(node: fx.Node) -> Tensor:
    """Return the tensor without values that has a node's shape, strides and dtype; the first one of
    several. :class:`Gap` of a node that gives no tensor."""
    found = node.meta.get("val")
    if isinstance(found, tuple | list) and found:
        found = found[0]
    if not isinstance(found, Tensor):
        raise Gap(f"{name_of(node)} without a tensor")
    return found


def constant(node: fx.Node) -> Any:
    """Return the constant that a node reads of its graph's module, or of a module within that."""
    return operator.attrgetter(str(node.target))(node.graph.owning_module)


def has_tensor(node: fx.Node) -> bool:
    """Tell whether :func:`fake` has a tensor for a node."""
    found = node.meta.get("val")
    return isinstance(found[0] if isinstance(found, tuple | list) and found else found, Tensor)


def shape(node: fx.Node) -> tuple[int, ...]:
    """Return the extents of a node's tensor; :class:`Gap` if one is symbolic or zero."""
    extents = tuple(fake(node).shape)
    if not all(type(extent) is int for extent in extents):
        raise Gap("a dynamic size")
    if 0 in extents:
        raise Gap("an extent of 0")
    return extents


def has_plain_shape(node: fx.Node) -> bool:
    """Tell whether :func:`shape` has the extents of a node."""
    try:
        shape(node)
    except Gap:
        return False
    return True


def long_dimensions(node: fx.Node) -> tuple[int, ...]:
    """Return the dimensions of more than one element: those that a kernel's array has."""
    return tuple(d for d, extent in enumerate(shape(node)) if extent != 1)


def dimension(given: int, rank: int) -> int:
    """Return a dimension counted from the first."""
    return given % max(rank, 1)


def dimensions(given: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """Dimensions counted from the first; all of them where none is given."""
    if given is None or given == []:
        return tuple(range(rank))
    several = [given] if isinstance(given, int) else given
    return tuple(dimension(each, rank) for each in several)
