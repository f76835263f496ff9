"""Put kernels in the place of regions of a graph, and cut regions out as graphs of their own."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import getitem
from typing import Any

import torch
from torch import fx

from tilewright.scheduler.torch.backend.libraries import read_packed
from tilewright.scheduler.torch.backend.weights import packed_constant
from tilewright.scheduler.torch.kernels.open_keys import calling_at
from tilewright.scheduler.torch.operator.definition import overload, several_outputs
from tilewright.scheduler.torch.regions.making import new_node, value_of
from tilewright.scheduler.torch.regions.region import Region
from tilewright.scheduler.torch.translation.gap import Gap
from tilewright.scheduler.torch.translation.nodes import closure, fake, has_tensor
from tilewright.spaces.workloads.calling import calling_of

ANY = -1
"""The extent of a dimension that follows from those of the others, as views have it."""
aten: Any = torch.ops.aten
prims: Any = torch.ops.prims


def copied(module: fx.GraphModule) -> fx.GraphModule:
    """Return a copy whose graph may be changed; it shares the module's tensors."""
    made = fx.GraphModule(module, copy.deepcopy(module.graph))
    made.meta = dict(module.meta)
    made._has_frozen_params = getattr(module, "_has_frozen_params", False)  # kept out of caches
    return made


def with_kernels(module: fx.GraphModule, regions: Collection[Region]) -> fx.GraphModule:
    """Return a copy in which kernels compute ``regions`` of the module's graph."""
    made = copied(module)
    nodes = dict(zip(module.graph.nodes, made.graph.nodes, strict=True))
    replace_regions(made.graph, [region.moved(nodes) for region in regions])
    made.recompile()  # Inductor's cache tells graphs apart by their code
    return made


def replace_regions(graph: fx.Graph, regions: Collection[Region]) -> None:
    """Let kernels compute ``regions`` of a graph: each reads what other kernels wrote."""
    order = {node: place for place, node in enumerate(graph.nodes)}
    done: dict[fx.Node, fx.Node] = {}
    for region in sorted(regions, key=lambda region: order[region.outputs[-1]]):
        with graph.inserting_before(region.outputs[-1]):
            packed = packed_constant(graph, region) if region.weight else None
            made = _call(graph, region, done, packed)
        for node, new in zip(region.outputs, made, strict=True):
            node.replace_all_uses_with(new)
            done[node] = new
    if any(len(region.outputs) > 1 for region in regions):
        from torch._inductor.pattern_matcher import stable_topological_sort

        stable_topological_sort(graph)  # what reads the first output may stand before the last one
    graph.eliminate_dead_code()
    graph.lint()


def cut(
    nodes: Collection[fx.Node], ends: Sequence[fx.Node]
) -> tuple[fx.GraphModule, dict[fx.Node, fx.Node]]:
    """Return those of ``nodes`` that lead to the ``ends`` as a graph of their own, whose module
    shares the constants; and its nodes by those of the graph that they are cut from."""
    source, graph, env = ends[0].graph, fx.Graph(), dict[fx.Node, fx.Node]()
    needed = set[fx.Node]().union(*(closure(end, nodes) for end in ends))
    inner = [node for node in source.nodes if node in needed]
    for node in dict.fromkeys(each for one in inner for each in one.all_input_nodes):
        if node not in needed and node.op != "get_attr":
            env[node] = graph.placeholder(node.name)
            env[node].meta = dict(node.meta)
    read = needed.union(each for one in inner for each in one.all_input_nodes)
    for node in source.nodes:
        if node in read and node not in env:
            env[node] = graph.node_copy(node, env.__getitem__)
    graph.output(tuple(env[node] for node in ends))
    module: Any = source.owning_module
    made = fx.GraphModule(module if module is not None else {}, graph)
    made.meta = dict(getattr(module, "meta", {}))
    made._has_frozen_params = getattr(module, "_has_frozen_params", False)  # kept out of caches
    return made, env


def ways_of(region: Region) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Return the region cut out of its graph, with its kernel and as torch computes it."""
    inner = region.nodes - {*region.operands}
    made, env = cut(inner, region.outputs)
    ours = with_kernels(made, [replace(region, nodes=inner & env.keys()).moved(env)])
    read_packed(made)
    return ours, made


def _call(
    graph: fx.Graph, region: Region, known: Mapping[fx.Node, fx.Node], packed: fx.Node | None
) -> list[fx.Node]:
    """Return nodes that give the outputs of a region by a call of its kernel, in the shapes of the
    nodes that they stand for; ``known`` has what operands are computed by now, and ``packed`` is
    the packed weight."""
    arrays = calling_of(region.workload).inputs
    shapes: Sequence[tuple[int, ...]] = [array.shape for array in arrays]
    if region.open_key:
        shapes = calling_at(region.open_key, ANY)[1][: len(arrays)]
    operands = [
        packed
        if packed is not None and region.weight is not None and node is region.weight.node
        else _operand(graph, node, known.get(node, node), region, array.dtype, shape)
        for node, array, shape in zip(region.operands, arrays, shapes, strict=True)
    ]
    several = len(region.outputs) > 1
    has_out = not _in_cpp() and not region.open_key  # Inductor writes it for plain sizes alone
    run, key = several_outputs() if several else overload(len(operands), has_out), region.key
    given = (operands, key) if run._overloadname == "default" else (*operands, key)
    made = new_node(graph, run, *given)
    made.meta["eager_input_vals"] = (fx.map_arg(given, value_of), {})  # of strides that stay
    results = [made]
    if several:
        results = [new_node(graph, getitem, made, place) for place in range(len(region.outputs))]
    pairs = zip(results, region.outputs, strict=True)
    return [_shaped(graph, result, fake(end), region, known) for result, end in pairs]


def _shaped(
    graph: fx.Graph,
    made: fx.Node,
    wanted: torch.Tensor,
    region: Region,
    known: Mapping[fx.Node, fx.Node],
) -> fx.Node:
    """Return a result of a kernel in the shape and strides of the tensor that it stands for."""
    sizes = [extent if isinstance(extent, int) else ANY for extent in wanted.shape]
    if _differs(made.meta["val"].shape, sizes):
        made = new_node(graph, aten.view.default, made, _sizes(graph, region, wanted, known))
    if ANY not in sizes and made.meta["val"].stride() != wanted.stride():  # of one element
        made = new_node(
            graph, aten.as_strided.default, made, list(wanted.shape), list(wanted.stride())
        )
    return made


def _sizes(
    graph: fx.Graph, region: Region, wanted: torch.Tensor, known: Mapping[fx.Node, fx.Node]
) -> list[Any]:
    """Return the shape of a result as the arguments of a view: one symbolic extent follows from the
    others, and more of them are read from operands."""
    found: list[Any] = [extent if isinstance(extent, int) else ANY for extent in wanted.shape]
    tensors = [*region.operands, *graph.find_nodes(op="placeholder")]
    for place in [place for place, extent in enumerate(found) if extent == ANY][1:]:
        for node, dimension in _symbolic(tensors):
            if fake(node).shape[dimension].node.expr == wanted.shape[place].node.expr:
                found[place] = new_node(graph, aten.sym_size.int, known.get(node, node), dimension)
                break
        else:
            raise Gap("a dynamic size that no tensor has")
    return found


def _symbolic(nodes: Collection[fx.Node]) -> Iterator[tuple[fx.Node, int]]:
    """Yield the dimensions of tensors whose extents are symbolic."""
    for node in filter(has_tensor, nodes):
        for dimension, extent in enumerate(fake(node).shape):
            if not isinstance(extent, int):
                yield node, dimension


def _in_cpp() -> bool:
    """Tell whether Inductor writes C++ that calls kernels."""
    from torch._inductor import config

    return bool(config.cpp_wrapper)


def _operand(
    graph: fx.Graph,
    node: fx.Node,
    now: fx.Node,
    region: Region,
    dtype: str,
    shape: Sequence[int],
) -> fx.Node:
    """Return an operand as the kernel's array: of its element type, strides and dimensions."""
    tensor = fake(node)
    if node in region.copies:
        kind = getattr(torch, dtype)
        if tensor.dtype != kind:
            now = new_node(graph, prims.convert_element_type.default, now, kind)
        now = new_node(graph, aten.clone.default, now, memory_format=torch.contiguous_format)
    if _differs(tensor.shape, shape):
        now = new_node(graph, aten.view.default, now, list(shape))
    return now


def _differs(given: Sequence[Any], shape: Sequence[int]) -> bool:
    """Tell whether a tensor's shape is another one than an array's, in which ``ANY`` is any
    extent."""
    if len(given) != len(shape):
        return True
    return any(wanted not in (ANY, e) for e, wanted in zip(given, shape, strict=True))
