"""Units and blocks of graphs, and pieces that compute what their nodes do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx

from tilewright.scheduler.torch.stages.units import Units, objection
from tilewright.scheduler.torch.translation.nodes import name_of

X, A, B = (torch.randn(4, 4) for _ in range(3))


def traced(function: Callable[..., object], *inputs: torch.Tensor) -> fx.GraphModule:
    return make_fx(function, tracing_mode="fake")(*inputs)


def branches(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    left = torch.relu(x @ a.t()) + 1
    right = torch.sigmoid(x @ b) @ b
    return (left * right) @ x + right.sum()


def test_operators_take_along_what_follows_them() -> None:
    units = Units(traced(branches, X, A, B))
    names = [[name_of(node) for node in nodes] for nodes in units.nodes]
    assert names == [
        ["mm", "relu", "add"],
        ["mm", "sigmoid"],
        ["mm"],
        ["mul"],  # it waits for two that do not wait for each other
        ["mm"],
        ["sum"],
        ["add"],
    ]
    assert units.before == [set(), set(), {1}, {0, 2}, {3}, {2}, {4, 5}]


def test_blocks_lie_between_what_all_others_are_ordered_with() -> None:
    def blocks(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        y = x @ a
        z = torch.cat([y @ a, y @ b @ b, torch.relu(y @ a)])
        return z @ a + z  # a residual is no branch

    found = Units(traced(blocks, X, A, B))
    assert [[len(found.nodes[unit]) for unit in block] for block in found.blocks()] == [
        [1],
        [1, 1, 1, 2],
        [1],
        [2],
    ]


def test_pieces_give_what_the_graph_gives() -> None:
    module = traced(branches, X, A, B)
    units = Units(module)
    values = dict(zip(module.graph.find_nodes(op="placeholder"), (X, A, B), strict=True))
    for unit in range(len(units.nodes)):
        piece = units.piece([unit])
        found = piece.module(*(values[node] for node in piece.inputs))
        values |= dict(zip(piece.outputs, found, strict=True))
    (result,) = module.graph.output_node().all_input_nodes
    torch.testing.assert_close(values[result], branches(X, A, B))


def test_an_input_that_is_returned_changed_is_a_unit_too() -> None:
    units = Units(traced(lambda x: (x.t(), x @ x), X))
    assert [[name_of(node) for node in nodes] for nodes in units.nodes] == [["t"], ["mm"]]


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x: (x.add_(1), x @ x), "add_ changes a tensor in place"),
        (lambda x: torch.rand_like(x) @ x, "rand_like draws random numbers"),
        (lambda x: x @ x, ""),
    ],
)
def test_some_graphs_cannot_run_in_parts(function, why: str) -> None:
    assert objection(traced(function, X.clone()).graph) == why


def test_sizes_must_be_known() -> None:
    module = make_fx(lambda x: x @ x.t(), tracing_mode="symbolic")(torch.randn(3, 5))
    assert objection(module.graph) == "it has a dynamic size"
