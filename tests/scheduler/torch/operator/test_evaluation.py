"""Torch computes what kernels do."""

from __future__ import annotations

import shlex

import numpy as np
import pytest
import torch

from tests.spaces import cycle_programs
from tilewright import operator, program, workload
from tilewright.scheduler.torch.operator.evaluation import TorchFunction, evaluated
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.language.functions import FUNCTIONS, REDUCERS
from tilewright.spaces.language.inputs import draw
from tilewright.spaces.language.program import Program
from tilewright.spaces.named import named, names

PROGRAMS = [
    (
        "y[n,o,p] = sum[c,j](inside(x[n,c,p + j - 1], 0) * w[o,c,j])\nx: float32[2,4,6]",
        {"n": 2, "o": 3, "c": 4, "p": 6, "j": 3},
    ),
    ("where j <= i\ny[i,d] = sum[j](a[i,j] * b[j,d])", {"i": 6, "j": 6, "d": 3}),
    ("where j <= i\ny[i] = max[j](a[i,j] + j)", {"i": 6, "j": 6}),
    ("y[i,j] = select(i // 2 == j % 3, x[i,j] / 3, -x[j,i]) + 2 * i", {"i": 6, "j": 6}),
    ("y[i] = prod[j](x[i] * 0.5 + j)", {"i": 3, "j": 4}),
]


def of_reducer(name: str) -> str:
    return f"y[i] = {name}[j](x[i,j] * 0.5)"


def agrees(made: Program) -> None:
    """Compare with the exact value, as closely as float32 allows."""
    inputs = draw(made, seed=0)
    found = evaluated(made, [_tensor(inputs[operand.name]) for operand in made.operands])
    wanted = evaluate(made, inputs)
    for output, value in zip(made.outputs, found, strict=True):
        kind = getattr(torch, output.dtype)
        assert value.dtype == kind
        close = {torch.bfloat16: 2e-2, torch.float16: 2e-3}.get(kind, 1e-5)
        expected = torch.tensor(wanted[output.name]).double()
        most = float(expected.abs().max())
        torch.testing.assert_close(value.double(), expected, rtol=close, atol=close * most)


def _tensor(array: np.ndarray) -> torch.Tensor:
    if array.dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        return torch.from_numpy(array.astype(np.float32)).to(getattr(torch, array.dtype.name))
    return torch.from_numpy(array)


@pytest.mark.parametrize("name", cycle_programs.TEXTS)
def test_steps_of_stages_that_read_themselves(name: str) -> None:
    agrees(program(cycle_programs.TEXTS[name], **cycle_programs.extents_of(name)))


def test_steps_have_the_gradients_of_a_loop() -> None:
    made = program(cycle_programs.TEXTS["delta"], **cycle_programs.extents_of("delta"))
    names = [operand.name for operand in made.operands]
    given = {n: _tensor(array).requires_grad_() for n, array in draw(made, seed=0).items()}
    (found,) = evaluated(made, [given[name] for name in names])
    k, g, v, q = (given[name] for name in "kgvq")
    state, outputs = torch.zeros(2, 5, 4), []
    for t in range(9):
        error = v[:, t] - (state * k[:, t, None]).sum(-1)
        state = state + g[:, t, None, None] * k[:, t, None] * error[..., None]
        outputs.append((state * q[:, t, None]).sum(-1))
    wanted = torch.stack(outputs, 1)
    factors = torch.rand(wanted.shape)
    for own, other in zip(
        torch.autograd.grad(found, [given[name] for name in names], factors),
        torch.autograd.grad(wanted, [given[name] for name in names], factors),
        strict=True,
    ):
        torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", names())
def test_named_operators(name: str) -> None:
    """In small: no extent is above 24."""
    words = dict(word.split("=", 1) for word in shlex.split(named(name).example))
    small = {key: min(int(word), 24) if word.isdigit() else word for key, word in words.items()}
    agrees(operator(name, **small))


@pytest.mark.parametrize(("text", "extents"), PROGRAMS)
def test_programs(text: str, extents: dict[str, int]) -> None:
    agrees(program(text, **extents))


@pytest.mark.parametrize("name", sorted(REDUCERS))
def test_reducers(name: str) -> None:
    agrees(program(of_reducer(name), i=5, j=9))


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions(name: str) -> None:
    """At ordinary values, at infinities and NaN, and at zeros of both signs."""
    function = FUNCTIONS[name]
    given = ", ".join(f"x{place}[i]" for place in range(function.arity))
    made = program(f"y[i] = {name}({given})", i=16)
    values = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, *np.linspace(-9, 9, 11)], np.float32)
    inputs = {f"x{place}": np.roll(values, place) for place in range(function.arity)}
    (found,) = evaluated(made, [torch.from_numpy(each) for each in inputs.values()])
    wanted = evaluate(made, inputs)["y"]
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=1e-6)


def test_a_function_of_torch_is_called_as_a_kernel_is() -> None:
    """It writes where it is told to, and new outputs lie as the declarations say."""
    made = TorchFunction(workload("y[j,i] = x[i,j] + 1\ny: float32[j,i](order=(1, 0))", i=4, j=6))
    x, out = torch.randn(4, 6), torch.empty(4, 6).t()
    assert made(x).stride() == (1, 6)
    assert made(x, out=out) is out
    assert torch.equal(out, x.t() + 1)
    product = TorchFunction(workload("matmul m=4 n=6 k=5 b=col epilogue=relu(x)"))
    a, b = torch.randn(4, 5), torch.randn(6, 5).t()
    torch.testing.assert_close(product(a, b), torch.relu(a @ b))
    most, total = TorchFunction(
        workload("m[r] = max[c](x[r,c])\ns[r] = sum[c](x[r,c])\n-> m, s", r=4, c=6)
    )(x)
    torch.testing.assert_close((most, total), (x.amax(1), x.sum(1)))
