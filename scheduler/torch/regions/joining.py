"""Products of one left factor as one: their constant weights are joined once, side by side.

Queries, keys and values are three such products, and the gate of a gated layer and its factor are
two. What reads one of them reads its columns of the joined product.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from itertools import count
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from tilewright.scheduler.torch.regions.making import computed, new_node
from tilewright.scheduler.torch.translation.nodes import (
    arguments,
    constant,
    fake,
    has_plain_shape,
    name_of,
    shape,
)
from tilewright.scheduler.torch.translation.products import factors_of

aten: Any = torch.ops.aten
SAME_ORDER = ("view", "_unsafe_view", "reshape")
"""Operators that give the elements of a tensor in their order, in another shape."""

Products = tuple[fx.Node, ...]
"""Products of one left factor, in the order of their graph."""


def products_of_one_factor(graph: fx.Graph) -> list[Products]:
    """Return the products of a graph that :func:`join` can make one, each in one group."""
    found = defaultdict[Hashable, list[fx.Node]](list)
    for node in graph.nodes:
        if _can_be_joined(node):
            found[_alike(node)].append(node)
    return [tuple(products) for products in found.values() if len(products) > 1]


def columns_of(products: Products) -> tuple[int, ...]:
    """Return the number of columns of each product."""
    return tuple(shape(node)[1] for node in products)


def join(graph: fx.Graph, products: Products) -> None:
    """Let one product compute several ones of a graph, whose module gets the joined weight and the
    joined bias as constants."""
    first = products[0]
    turned = _is_turned(factors_of(first)[1])
    with graph.inserting_before(first):
        weights = [_constant(_weight(node)) for node in products]
        right = _constant_node(first, torch.cat(weights, 0 if turned else 1))
        if turned:
            right = new_node(graph, aten.permute.default, right, [1, 0])
        left = factors_of(first)[0]
        if any(name_of(node) == "addmm" for node in products):
            bias = _constant_node(first, torch.cat([_bias(node) for node in products]))
            made = new_node(graph, aten.addmm.default, bias, left, right)
        else:
            made = new_node(graph, aten.mm.default, left, right)
        made.meta.update({key: value for key, value in first.meta.items() if key != "val"})
        start, parts = 0, dict[fx.Node, fx.Node]()
        for node, columns in zip(products, columns_of(products), strict=True):
            parts[node] = new_node(graph, aten.slice.Tensor, made, 1, start, start + columns)
            start += columns
    for node, part in parts.items():
        node.replace_all_uses_with(part)
        graph.erase_node(node)
    _follow(graph, set(parts.values()))


def _can_be_joined(node: fx.Node) -> bool:
    """Tell whether a node is a product with a constant weight, and perhaps a constant bias of its
    columns."""
    if name_of(node) not in ("mm", "addmm") or not has_plain_shape(node):
        return False
    if len(shape(node)) != 2 or _weight(node).op != "get_attr":
        return False
    if name_of(node) == "mm":
        return True
    given = arguments(node)
    bias, columns = given["self"], shape(node)[1]
    plain = given["alpha"] == given["beta"] == 1
    return plain and bias.op == "get_attr" and tuple(fake(bias).shape) == (columns,)


def _alike(node: fx.Node) -> Hashable:
    """Return what products have in common that one product can compute."""
    left, right = factors_of(node)
    source = left
    while name_of(source) in SAME_ORDER:
        source = source.all_input_nodes[0]
    tensors = (fake(node), fake(left), fake(right))
    return (source, shape(left), _is_turned(right), tuple(each.dtype for each in tensors))


def _is_turned(right: fx.Node) -> bool:
    """Tell whether a factor is the transpose of a weight, whose rows are then its columns."""
    if name_of(right) not in ("permute", "t", "transpose"):
        return False
    return right.all_input_nodes[0].op == "get_attr"


def _weight(product: fx.Node) -> fx.Node:
    right = factors_of(product)[1]
    return right.all_input_nodes[0] if _is_turned(right) else right


def _constant(node: fx.Node) -> torch.Tensor:
    found: torch.Tensor = constant(node)
    return found.detach()


def _bias(product: fx.Node) -> torch.Tensor:
    """Return what a product adds to its columns: zeros, where it adds nothing."""
    if name_of(product) == "addmm":
        return _constant(arguments(product)["self"])
    return _constant(_weight(product)).new_zeros(shape(product)[1])


def _constant_node(product: fx.Node, tensor: Any) -> fx.Node:
    """Return the node of a new constant of the module of a product's graph."""
    graph, module = product.graph, product.graph.owning_module
    assert module is not None
    names = (f"joined_{number}" for number in count())
    name = next(name for name in names if not hasattr(module, name))
    tensor._is_frozen_param = True  # told apart by its name alone
    module.register_buffer(name, tensor, persistent=False)
    node = graph.get_attr(name)
    node.meta["val"] = fake(product).new_empty(tuple(tensor.shape))
    return node


def _follow(graph: fx.Graph, changed: set[fx.Node]) -> None:
    """Describe what depends on changed nodes by what it now is: strides may be others."""
    for node in graph.nodes:
        if node.op != "call_function" or changed.isdisjoint(node.all_input_nodes):
            continue
        before, node.meta["val"] = node.meta.get("val"), computed(node)
        if _layout(before) != _layout(node.meta["val"]):
            changed.add(node)


def _layout(value: Any) -> Any:
    """Return where the elements of tensors lie."""
    return pytree.tree_map_only(
        torch.Tensor, lambda each: (each.shape, each.stride(), each.storage_offset()), value
    )
