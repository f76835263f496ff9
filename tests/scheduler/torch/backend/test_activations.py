"""Training in less memory: what a compiled model keeps, counted, and gradients as eager's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from experiments.activations.counting import kept_bytes
from tilewright.scheduler.torch import backend


class Block(nn.Module):
    """A norm and two layers with an activation between them, beside a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(32)
        self.wide, self.narrow = nn.Linear(32, 128), nn.Linear(128, 32)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.narrow(nn.functional.gelu(self.wide(self.norm(x))))


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch.set_num_threads(before)


def gradients(run: nn.Module, model: nn.Module, x: Tensor) -> list[Tensor]:
    x = x.detach().requires_grad_()
    factor = torch.randn(x.shape, generator=torch.Generator().manual_seed(1))
    return [*torch.autograd.grad(run(x), [x, *model.parameters()], factor)]


def test_a_share_of_the_activations_is_kept() -> None:
    model, x, kept = Block(), torch.randn(64, 32, requires_grad=True), {}
    kept["eager"] = kept_bytes(model, x, model=model)
    for share in (0.5, 0):
        torch._dynamo.reset()
        options = {"judge": "always", "db": None, "activations": share}
        fast = torch.compile(model, backend=backend.tilewright, options=options)
        for own, wanted in zip(gradients(fast, model, x), gradients(model, model, x), strict=True):
            torch.testing.assert_close(own, wanted, rtol=1e-4, atol=1e-4)
        kept[share] = kept_bytes(fast, x, model=model)
    assert kept[0.5] <= 0.51 * kept["eager"]  # the activation is computed again, and the norm
    assert kept[0] == x.numel() * 4


def test_each_array_is_counted_once_and_parameters_are_not() -> None:
    model, x = nn.Linear(8, 4), torch.randn(16, 8, requires_grad=True)
    assert kept_bytes(model, x, model=model) == 16 * 8 * 4

    def twice(x: Tensor) -> Tensor:
        return (x * x).view(8, 16) * model.bias.sum() + x.view(8, 16) * 3

    views = kept_bytes(twice, x, model=model)
    assert views == 2 * 16 * 8 * 4 + 4  # x, its square, and the sum that both are multiplied by
