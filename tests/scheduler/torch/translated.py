"""Translations of functions of tensors, and their values by the language's own evaluator."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx

from tilewright.scheduler.torch.regions.region import Region
from tilewright.scheduler.torch.translation.arrays import Described
from tilewright.scheduler.torch.translation.nodes import shape
from tilewright.scheduler.torch.translation.program import Translation
from tilewright.spaces.language import program
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.calling import calling_of

Function = Callable[..., Any]


def traced(function: Function, inputs: Sequence[torch.Tensor]) -> fx.GraphModule:
    """The graph of ATen nodes of a function, without mutations."""
    functional = torch.func.functionalize(function, remove="mutations")
    return make_fx(functional, tracing_mode="fake")(*inputs)


def translation_of(function: Function, inputs: Sequence[torch.Tensor]) -> Translation:
    """The whole graph of a function as one program."""
    graph = traced(function, inputs).graph
    nodes = [node for node in graph.nodes if node.op == "call_function"]
    return Translation(nodes, results_of(graph))


def results_of(graph: fx.Graph) -> list[fx.Node]:
    """The nodes that a graph returns, each once."""
    (output,) = graph.find_nodes(op="output")
    return list(dict.fromkeys(output.all_input_nodes))


def values_of(translation: Translation, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The outputs of a translated function of these inputs, in float64 or int64."""
    made = program(translation.text)
    (placed, *_) = {node.graph for node in translation.outputs}
    given = dict(zip(placed.find_nodes(op="placeholder"), inputs, strict=True))
    constants = placed.find_nodes(op="get_attr")
    given |= {node: getattr(placed.owning_module, node.target) for node in constants}
    arrays = {
        array.name: array_of(given[node], array) for node, array in translation.operands.items()
    }
    found = evaluate(made, arrays)
    return [
        torch.from_numpy(np.array(found[output.name])).reshape(shape(node))
        for node, output in zip(translation.outputs, made.outputs, strict=True)
    ]


def array_of(tensor: torch.Tensor, array: Described | Array) -> np.ndarray:
    """A tensor as the array that the program reads, but for the rounding to its dtype."""
    kind = torch.float64 if tensor.is_floating_point() else getattr(torch, array.dtype)
    return tensor.reshape(array.shape).to(kind).numpy()


def agree(found: torch.Tensor, expected: torch.Tensor) -> bool:
    """Tell whether values are equal, but for a little rounding."""
    expected = expected.double()
    return torch.allclose(found.double(), expected, rtol=1e-9, atol=1e-9, equal_nan=True)


def check(function: Function, *inputs: torch.Tensor) -> Translation:
    """Assert that a translated function has the values that torch computes in float64."""
    translation = translation_of(function, inputs)
    doubled = [t.double() if t.is_floating_point() else t for t in inputs]
    expected = function(*doubled)
    several = expected if isinstance(expected, tuple | list) else [expected]
    for found, right in zip(values_of(translation, inputs), several, strict=True):
        assert found.shape == right.shape
        assert agree(found, right), f"{translation.text}\n{found}\n{right}"
    return translation


def computed(region: Region, values: Mapping[fx.Node, torch.Tensor]) -> list[torch.Tensor]:
    """The outputs of a region in float64, in the shapes of its nodes."""
    calling = calling_of(region.workload)
    made = region.workload.written
    arrays = {
        array.name: array_of(values[node], array)
        for node, array in zip(region.operands, calling.inputs, strict=True)
    }
    found = evaluate(made, arrays)
    return [
        torch.from_numpy(np.array(found[array.name])).reshape(shape(node))
        for node, array in zip(region.outputs, calling.outputs, strict=True)
    ]
