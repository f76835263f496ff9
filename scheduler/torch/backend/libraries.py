"""Products and convolutions whose constant weights torch has packed for its libraries.

Under Inductor's option ``freezing``, linear layers and convolutions of CPUs are calls of MKL and
oneDNN with packed weights when the backend sees a graph. :func:`read_plain` makes them ATen nodes
that read plain weights, which can be translated. Those that no kernel computes in the end call the
library with the packed weight again, by :func:`read_packed`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

from tilewright.scheduler.torch.backend.judging import running
from tilewright.scheduler.torch.regions.making import new_node
from tilewright.scheduler.torch.translation.nodes import arguments, fake, name_of
from tilewright.scheduler.torch.translation.products import factors_of

aten: Any = torch.ops.aten
CALLS = "calls of libraries"
"""The entry of a module's ``meta`` that has a :class:`_Call` by the name of each ATen node."""


@dataclass(frozen=True)
class _Call:
    """A call of a library: its operator, the packed weight with its name, and the arguments after
    the bias. MKL is given the plain weight as well: it ``reads_plain``."""

    target: Any
    name: str
    weight: torch.Tensor
    others: Sequence[Any]
    reads_plain: bool


def read_plain(module: fx.GraphModule) -> None:
    """Let products and convolutions of packed weights read plain ones, and keep what they were."""
    graph = module.graph
    _describe_constants(module)
    known: dict[str, _Call] = module.meta.setdefault(CALLS, {})
    matrices: dict[fx.Node, fx.Node] = {}
    for node in list(graph.nodes):
        plainly = PLAINLY.get(name_of(node))
        if plainly is None or not _is_plain_sum(node):
            continue
        with graph.inserting_before(node), running():
            left = node.args[0]
            if fake(node).dim() > 2 and plainly is _linear:
                if left not in matrices:  # products of one left factor still are
                    rows = [-1, fake(left).shape[-1]]
                    matrices[left] = new_node(graph, aten.view.default, left, rows)
                node.args = (matrices[left], *node.args[1:])
            made = plainly(node)
            known[made.name] = _call(node)
            made.meta.update({key: value for key, value in node.meta.items() if key != "val"})
            if fake(made).dim() != fake(node).dim():
                made = new_node(graph, aten.view.default, made, _sizes(node, left))
        node.replace_all_uses_with(made)
    graph.eliminate_dead_code()
    module.recompile()


def read_packed(module: fx.GraphModule) -> None:
    """Let products and convolutions that :func:`read_plain` made call their libraries again."""
    graph, calls = module.graph, module.meta.pop(CALLS, {})
    computed = [node for node in graph.nodes if node.op == "call_function"]  # parts have inputs
    for node in [node for node in computed if node.name in calls]:
        call, given = calls[node.name], arguments(node)
        plain: list[fx.Node] = []
        if name_of(node) == "convolution":
            left, bias = given["input"], given["bias"]
        else:
            left, columns = factors_of(node)
            plain = columns.all_input_nodes if call.reads_plain else []
            bias = given["self"] if name_of(node) == "addmm" else None
        with graph.inserting_before(node):
            if not hasattr(module, call.name):  # strided ones are read as they are
                module.register_buffer(call.name, call.weight, persistent=False)
            packed = graph.get_attr(call.name)
            made = graph.call_function(call.target, (left, packed, *plain, bias, *call.others))
            made.meta.update(node.meta)
        node.replace_all_uses_with(made)
    graph.eliminate_dead_code()
    module.recompile()


def called_by(nodes: Collection[fx.Node]) -> tuple[str, ...]:
    """Return the operators of libraries that torch calls for some nodes of a graph, sorted."""
    calls = {
        name: call
        for module in {node.graph.owning_module for node in nodes}
        for name, call in getattr(module, "meta", {}).get(CALLS, {}).items()
    }
    return tuple(sorted(str(calls[node.name].target) for node in nodes if node.name in calls))


def repacked(graph: fx.Graph, name: str) -> torch.Tensor | None:
    """Return a constant of a graph's module as MKL packs it once more; None of other constants.
    What MKL packed depends on where it lies in memory: a copy of it is worth nothing."""
    module = graph.owning_module
    for node in graph.nodes:
        if name_of(node) == "_mkl_linear" and node.args[1].target == name:
            plain = getattr(module, str(node.args[2].target))
            made: torch.Tensor = torch.ops.mkl._mkl_reorder_linear_weight(plain, node.args[4])
            return made
    return None


def _call(node: fx.Node) -> _Call:
    """Return the call that a node is."""
    packed, is_mkl = node.args[1], name_of(node) == "_mkl_linear"
    assert isinstance(packed, fx.Node)
    weight = getattr(node.graph.owning_module, str(packed.target))
    return _Call(node.target, str(packed.target), weight, node.args[3 + is_mkl :], is_mkl)


def _is_plain_sum(node: fx.Node) -> bool:
    """Tell whether a call reads a constant, and does nothing after the sum and the bias."""
    weight, after = node.args[1], node.args[-3]
    fused = name_of(node) != "_mkl_linear" and after != "none"
    return isinstance(weight, fx.Node) and weight.op == "get_attr" and not fused


def _linear(node: fx.Node) -> fx.Node:
    """Return the product of matrices that a linear layer is."""
    graph = node.graph
    rows, packed, *others = node.args
    is_mkl = name_of(node) == "_mkl_linear"
    weight, bias = others[:2] if is_mkl else (_plain(packed), others[0])
    columns = new_node(graph, aten.permute.default, weight, [1, 0])
    given = (rows, columns) if bias is None else (bias, rows, columns)
    made = graph.call_function(aten.mm.default if bias is None else aten.addmm.default, given)
    made.meta["val"] = fake(node).new_empty((fake(rows).shape[0], fake(node).shape[-1]))
    return made


def _sizes(node: fx.Node, left: fx.Node) -> list[Any]:
    """Return the shape of what a linear layer gives, as arguments of a view. The rows are those of
    its ``left`` factor."""
    return [
        extent
        if isinstance(extent, int)
        else new_node(node.graph, aten.sym_size.int, left, dimension)
        for dimension, extent in enumerate(fake(node).shape)
    ]


def _convolution(node: fx.Node) -> fx.Node:
    image, packed, bias, padding, stride, dilation, groups, *_ = node.args
    about = (stride, padding, dilation, False, [0] * len(padding), groups)
    return _convolved(node, image, _plain(packed), bias, *about)


def _transposed_convolution(node: fx.Node) -> fx.Node:
    image, packed, bias, padding, beyond, stride, dilation, groups, *_ = node.args
    about = (stride, padding, dilation, True, beyond, groups)
    return _convolved(node, image, _plain(packed, groups), bias, *about)


def _convolved(node: fx.Node, *given: Any) -> fx.Node:
    """Return a convolution whose result lies as that of ``node`` does."""
    made = node.graph.call_function(aten.convolution.default, given)
    made.meta["val"] = fake(node)
    return made


PLAINLY: dict[str, Callable[[fx.Node], fx.Node]] = {
    "_mkl_linear": _linear,
    "_linear_pointwise": _linear,
    "_convolution_pointwise": _convolution,
    "_convolution_transpose_pointwise": _transposed_convolution,
}
"""Makers of the ATen node of a call, by the operator of its library."""


# -- constants ---------------------------------------------------------------------------------


def _plain(packed: fx.Node, groups: int = 0) -> fx.Node:
    """Return the plain weight of a packed one, which a transposed convolution of so many ``groups``
    reads, if they are given."""
    graph, module = packed.graph, packed.graph.owning_module
    assert module is not None
    tensor = getattr(module, str(packed.target))
    if tensor.layout is torch.strided and not groups:  # sizes are symbolic, or there are no values
        return packed
    name = f"{packed.target}_plain".replace(".", "_")
    if not hasattr(module, name):
        made = tensor if tensor.layout is torch.strided else tensor.to_dense()
        made = _with_inputs_first(made, groups) if groups else made
        made._is_frozen_param = True  # told apart by its name alone
        module.register_buffer(name, made, persistent=False)
    node = graph.get_attr(name)
    _describe(node, getattr(module, name))
    return node


def _with_inputs_first(weight: torch.Tensor, groups: int) -> torch.Tensor:
    """Return the weight of a transposed convolution as ATen has it. Packed weights have the outputs
    of all groups first."""
    outputs, inputs, *taps = weight.shape
    made = weight.reshape(groups, outputs // groups, inputs, *taps).transpose(1, 2)
    return made.reshape(groups * inputs, outputs // groups, *taps).contiguous()


def _describe_constants(module: fx.GraphModule) -> None:
    """Give constants that torch made last a tensor without values, as all other nodes have one."""
    for node in module.graph.find_nodes(op="get_attr"):
        tensor = getattr(module, str(node.target), None)
        is_plain = isinstance(tensor, torch.Tensor) and tensor.layout is torch.strided
        if is_plain and "val" not in node.meta:
            _describe(node, tensor)


def _describe(node: fx.Node, tensor: torch.Tensor) -> None:
    """Give the node of a constant a tensor without values, as the other nodes of its graph have.
    The constant itself may be one of another kind, in a graph that is not to be run."""
    values = (each.meta.get("val") for each in node.graph.nodes)
    mode = next((each.fake_mode for each in values if isinstance(each, FakeTensor)), None)
    if mode is not None:
        about = {"dtype": tensor.dtype, "device": tensor.device}
        with mode:
            node.meta["val"] = torch.empty_strided(tensor.shape, tensor.stride(), **about)
