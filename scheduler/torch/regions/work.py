"""The amount of work of nodes: floating-point operations, and bytes that must move."""

from __future__ import annotations

from math import prod

from torch import fx

from tilewright.scheduler.torch.translation.gap import Gap
from tilewright.scheduler.torch.translation.nodes import arguments, fake, has_tensor, name_of, shape
from tilewright.scheduler.torch.translation.products import factors_of
from tilewright.scheduler.torch.translation.rules import Kind
from tilewright.scheduler.torch.translation.table import kind_of


def flops_of(node: fx.Node) -> int:
    """Return two for each term of a product, a convolution or attention; none of other nodes, and
    of those with a dynamic size."""
    if kind_of(node) is not Kind.PRODUCT:
        return 0
    try:
        return _flops(node)
    except Gap:
        return 0


def _flops(node: fx.Node) -> int:
    given, name = arguments(node), name_of(node)
    if name == "convolution":
        source = given["input"] if given["transposed"] else node
        return 2 * prod(shape(source)) * prod(shape(given["weight"])[1:])
    if "query" in given:
        *rows, inner = shape(given["query"])
        return 2 * prod(rows) * shape(given["key"])[2] * (inner + shape(given["value"])[3])
    return 2 * prod(shape(node)) * shape(factors_of(node)[0])[-1]


def bytes_of(node: fx.Node) -> int:
    """Return the bytes that a node reads and writes, each tensor once; none of a dynamic size."""
    try:
        every = filter(has_tensor, (node, *dict.fromkeys(node.all_input_nodes)))
        return sum(prod(shape(each)) * fake(each).element_size() for each in every)
    except Gap:
        return 0
