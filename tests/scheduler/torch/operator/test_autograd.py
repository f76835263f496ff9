"""Gradients of the named operators equal torch's, in float64."""

from collections.abc import Mapping

import pytest
import torch

from tests.spaces.derivation.gradients.differences import derivatives, seeds
from tests.spaces.derivation.gradients.test_gradient import CASES
from tilewright.scheduler.torch.operator.evaluation import evaluated
from tilewright.spaces.named import operator


@pytest.mark.parametrize(("name", "parameters", "wrt"), CASES, ids=[case[0] for case in CASES])
def test_operators(name: str, parameters: Mapping[str, object], wrt: list[str]) -> None:
    made = operator(name, **parameters, dtype="float64")
    found, inputs, _ = derivatives(made, wrt)
    tensors = {operand: torch.from_numpy(array) for operand, array in inputs.items()}
    for operand in wrt:
        tensors[operand].requires_grad_()
    results = evaluated(made, [tensors[operand.name] for operand in made.operands])
    given = seeds(made)
    factors = [torch.from_numpy(given[output.name]) for output in made.outputs]
    wanted = torch.autograd.grad(results, [tensors[operand] for operand in wrt], factors)
    for operand, gradient in zip(wrt, wanted, strict=True):
        torch.testing.assert_close(torch.tensor(found[operand]), gradient, rtol=1e-9, atol=1e-11)
