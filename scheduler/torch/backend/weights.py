"""Weights that stay as they are: packed once, when a graph is compiled.

With Inductor's option ``freezing`` the parameters of a model are constants of its graph. A product
with such a weight has a twin that reads it packed (:mod:`spaces.workloads.packing`). The packed
copy belongs to the compiled graph, beside the model's own parameter.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import fx

from tilewright.scheduler.torch.backend.judging import running
from tilewright.scheduler.torch.regions.region import Region, Weight
from tilewright.scheduler.torch.translation.nodes import constant, fake
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.calling import calling_of
from tilewright.spaces.workloads.packed_twin import packed_twin
from tilewright.spaces.workloads.packing import pack


def with_packed_weight(region: Region) -> Region | None:
    """Return the region with its constant weight packed; None if it has none that can be."""
    arrays = calling_of(region.workload).inputs
    if region.open_key:
        return None
    for node, array in zip(region.operands, arrays, strict=True):
        found = packed_twin(region.workload, array.name) if node.op == "get_attr" else None
        if found is not None:
            workload, turned = found
            copies = region.copies - {node}
            weight = Weight(node, array.shape, turned)
            return replace(region, workload=workload, weight=weight, copies=copies)
    return None


def packed_tensor(tensor: torch.Tensor, weight: Weight) -> torch.Tensor:
    """Return the elements of a weight in the packed order."""
    matrix = tensor.reshape(weight.shape)
    made: torch.Tensor = pack(matrix.T if weight.turned else matrix)
    return made


def packed_array(region: Region) -> Array:
    """Return the array that is the packed weight of a region."""
    assert region.weight is not None
    return calling_of(region.workload).inputs[region.operands.index(region.weight.node)]


def like_packed(region: Region) -> torch.Tensor:
    """Return a tensor without values that is like the packed weight of a region."""
    assert region.weight is not None
    return fake(region.weight.node).new_empty(packed_array(region).shape)


def packed_constant(graph: fx.Graph, region: Region) -> fx.Node:
    """Return a constant of the graph's module that has the packed weight of a region: made by the
    first region that reads it."""
    module, weight = graph.owning_module, region.weight
    assert module is not None
    assert weight is not None
    name = f"{weight.node.target}_packed{'_turned' if weight.turned else ''}".replace(".", "_")
    if not hasattr(module, name):
        tensor = constant(weight.node)
        with running():
            made = packed_tensor(tensor.detach(), weight)
        made._is_frozen_param = True  # told apart by its name alone
        module.register_buffer(name, made, persistent=False)
    node = graph.get_attr(name)
    node.meta["val"] = like_packed(region)
    return node
