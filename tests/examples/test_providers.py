"""Kernels inside vLLM's IR and Hugging Face's ``kernels``, by the modules of the examples."""

from __future__ import annotations

import sys
from importlib import util
from types import ModuleType
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402, N812
from torch import nn  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from tests.examples import vllm_stand_in  # noqa: E402
from tests.pages import ROOT  # noqa: E402


def example(name: str) -> Any:
    spec = util.spec_from_file_location(name, ROOT / f"examples/providers/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules[name] = module  # Dynamo looks functions up by the names of modules
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def ir() -> Any:
    """``vllm.ir`` with our provider: vLLM's own where it is installed."""
    try:
        import vllm.ir
    except ImportError:
        vllm = ModuleType("vllm")
        vllm.ir = vllm_stand_in.module()  # type: ignore[attr-defined]
        sys.modules["vllm"] = vllm
    provider = example("vllm_ir")
    provider.register()
    return sys.modules["vllm"].ir


def inputs(dtype: Any) -> tuple[Any, Any, Any]:
    torch.manual_seed(0)
    x, residual = torch.randn(2, 3, 64).to(dtype), torch.randn(2, 3, 64).to(dtype)
    return x, residual, (torch.rand(64) + 0.5).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_vllm_calls_kernels_by_their_priority(ir, dtype) -> None:
    x, residual, weight = inputs(dtype)
    norm, added = ir.ops.rms_norm, ir.ops.fused_add_rms_norm
    wanted = norm.impls["native"].impl_fn(x, weight, 1e-5)
    both = added.impls["native"].impl_fn(x, residual, weight, 1e-5)
    near = {"rtol": 2e-2, "atol": 2e-2} if dtype == torch.bfloat16 else {"rtol": 1e-5, "atol": 1e-5}
    with norm.set_priority(["tilewright"]), added.set_priority(["tilewright"]):
        assert norm.dispatch(x, weight, 1e-5).provider == "tilewright"
        assert added.dispatch(x, residual, weight, 1e-5).provider == "tilewright"
        torch.testing.assert_close(norm(x, weight, 1e-5), wanted, **near)
        torch.testing.assert_close(added(x, residual, weight, 1e-5), both, **near)
    assert wanted.shape == x.shape


def test_vllm_computes_itself_what_no_kernel_serves(ir) -> None:
    x, _, weight = inputs(torch.float32)
    op = ir.ops.rms_norm
    with op.set_priority(["tilewright"]):
        for given in ((x, None, 1e-5), (x, weight, 1e-5, 32), (x, weight.double(), 1e-5)):
            assert op.dispatch(*given).provider == "native"

        def lowered(x: Any, weight: Any) -> Any:
            return op.dispatch(x, weight, 1e-5).impl_fn(x, weight, 1e-5)

        for mode, ours in (("fake", True), ("symbolic", False)):
            graph = make_fx(lowered, tracing_mode=mode)(x, weight).graph
            names = [str(node.target) for node in graph.nodes]
            assert any("tilewright.run" in name for name in names) is ours


class LlamaRMSNorm(nn.Module):
    """As ``transformers`` has it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(torch.rand(width) + 0.5), 1e-5

    def forward(self, hidden_states: Any) -> Any:
        scale = hidden_states.square().mean(-1, keepdim=True) + self.variance_epsilon
        return hidden_states * scale.rsqrt() * self.weight


class SiluAndMul(nn.Module):
    def forward(self, x: Any) -> Any:
        d = x.shape[-1] // 2
        return F.silu(x[..., :d]) * x[..., d:]


def test_layers_of_hugging_face_are_replaced_by_name() -> None:
    kernels = pytest.importorskip("kernels")
    mapping = example("huggingface").MAPPING
    named = kernels.use_kernel_forward_from_hub
    types = [named("RMSNorm")(LlamaRMSNorm), named("SiluAndMul")(SiluAndMul)]
    torch.manual_seed(0)
    model = nn.Sequential(types[0](64), nn.Linear(64, 96), types[1]())
    x = torch.randn(2, 3, 64)
    wanted = model(x)
    gradient = torch.autograd.grad(wanted.sum(), model[0].weight)
    mode = kernels.Mode.TRAINING | kernels.Mode.TORCH_COMPILE
    with kernels.use_kernel_mapping(mapping, inherit_mapping=False):
        fast = kernels.kernelize(model, mode=mode, device="cpu", use_fallback=False)
    assert fast[0].forward.__func__ is not LlamaRMSNorm.forward
    torch.testing.assert_close(fast(x), wanted, rtol=1e-5, atol=1e-5)
    ours = torch.autograd.grad(fast(x).sum(), fast[0].weight)
    torch.testing.assert_close(ours, gradient, rtol=1e-4, atol=1e-5)
    compiled = torch.compile(fast, backend="aot_eager", fullgraph=True)
    with torch.no_grad():
        for rows in (3, 5, 7):
            x = torch.randn(2, rows, 64)
            torch.testing.assert_close(compiled(x), fast(x))
