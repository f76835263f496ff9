"""Every template keeps to the contract, on those workloads of a few that it serves."""

from __future__ import annotations

from tests.spaces import cycle_programs
from tests.spaces.language.ragged_programs import extents_of, text_of
from tests.spaces.recurrent_programs import TEXTS
from tests.spaces.recurrent_programs import extents_of as extents_of_prefixes
from tilewright.spaces.cpu.target import detect_cpu
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import templates_for
from tilewright.spaces.target import Target
from tilewright.spaces.template import Template
from tilewright.spaces.testing.template import TemplateContract
from tilewright.spaces.workloads.gradients import gradient
from tilewright.spaces.workloads.served import workload_of
from tilewright.spaces.workloads.workload import Workload

WORKLOADS = [
    workload("matmul", m=3, n=65, k=70),
    workload("matmul", m=5, n=130, k=96, dtype="bfloat16", b="col"),
    workload("matmul", m=70, n=64, k=96, dtype="bfloat16", epilogue="gelu(x + bias[n])"),
    workload("matmul", m=9, n=70, k=50, b="packed", epilogue="relu(x + bias[n])"),
    workload("bmm", batch=3, m=33, n=64, k=40, dtype="bfloat16"),
    workload("conv2d n=2 c=16 h=9 w=9 o=24 r=3 s=3 padding=1 dtype=bfloat16"),
    workload("conv2d n=1 c=40 h=9 w=9 o=24 r=3 s=3 padding=1 layout=NHWC"),
    workload("conv2d n=2 c=3 h=15 w=17 o=24 r=3 s=3 stride=2 layout=NHWC dtype=float16"),
    workload("conv2d_transposed n=1 c=8 h=5 w=6 o=24 r=3 s=3 stride=2 padding=1"),
    workload("softmax", r=40, c=200),
    workload("sum", shape="64x300", over="0"),
    workload("y[j, i] = relu(x[i, j] + b[i])", i=70, j=130),
    workload("y[r, i] = sum[j: j < i](x[r, j] * w[j]) + b[r]", r=70, i=130, j=130),
    workload("y[i, r] = exp(sum[j: j >= i](x[j, r]))", r=70, i=130, j=130),
    workload(TEXTS["state space"], h=3, t=70, s=70, d=20, e=64),
    workload(TEXTS["gated"], **extents_of_prefixes("gated")),
    workload(TEXTS["state space"], h=2, t=90, s=90, d=32, e=48, dtype="float16"),
    workload(cycle_programs.TEXTS["delta"], b=3, t=40, d=70, e=20),
    workload(cycle_programs.TEXTS["gates"], b=3, t=40, d=64),
    workload(cycle_programs.TEXTS["matrix"], b=20, t=9, d=12, e=12),
    workload("max_pool2d n=2 c=16 h=9 w=9 r=3"),
    workload("attention b=2 h=2 i=40 j=40 d=16"),
    workload("attention b=2 h=4 kv=2 i=200 j=200 d=64 mask=causal dtype=bfloat16"),
    workload("y[i] = argmax[j](sum[d](x[i,d] * u[j,d]))", i=40, j=90, d=704, dtype="bfloat16"),
    workload("gated_matmul m=40 n=64 k=24"),
    workload(
        "q: uint3[n, k](packed); y[m, n] = sum[k](a[m, k] * (q[n, k] - 4) * s[n, k // 32])",
        m=5,
        n=40,
        k=96,
    ),
    workload(
        "q: uint4[n, k](packed); a: bfloat16[m, k]; s: bfloat16[k // 64, n]; "
        "y[m, n] = sum[k](a[m, k] * (q[n, k] - 8) * s[k // 64, n])",
        m=5,
        n=4400,
        k=192,
    ),
    workload(
        "x: int8[m, k]; q: uint4[n, k](packed); "
        "y[m, n] = sum[k](x[m, k] * (q[n, k] - 8) * s[k // 64, n]) * d[m]",
        m=5,
        n=40,
        k=192,
    ),
    workload(
        "e: int32[t](sorted < 5); q: uint4[5, n, k](packed); a: bfloat16[t, k]; "
        "s: bfloat16[5, k // 64, n]; "
        "y[t, n] = sum[k](a[t, k] * (q[e[t], n, k] - 8) * s[e[t], k // 64, n])",
        t=40,
        n=150,
        k=192,
    ),
    workload("gated_matmul m=40 n=64 k=24 dtype=bfloat16"),
    workload(text_of("mean"), **extents_of("mean", 40, 300, c=70)),
    workload(text_of("heads", pointers=True), **extents_of("heads", 40, 300, c=40, d=19)),
    workload(
        "ptr: int32[n+1](sorted < e+1); col: uint16[e](index < 50); "
        "y[m,n] = sum[e: ptr[n] <= e < ptr[n + 1]](v[e] * a[m,col[e]])",
        m=8,
        n=40,
        e=300,
    ),
    workload_of(gradient("attention b=1 h=2 i=24 j=24 d=16", "q,k,v", saved="y,lse")),
    workload_of(
        gradient(
            "attention b=1 h=4 kv=2 i=72 j=72 d=32 mask=causal dtype=bfloat16",
            "q,k,v",
            saved="y,lse",
        )
    ),
    workload_of(gradient("matmul m=48 n=64 k=96 epilogue=gelu(x+bias[n])", "A,B,bias")),
]


def contract_of(template: type[Template], target: Target) -> type[TemplateContract]:
    """The contract's tests of one of a target's templates."""
    pairs = [(work, target) for work in WORKLOADS]
    name = f"Test{type(target).__name__}{template.__name__}"

    def served(self: object) -> list[tuple[Workload, Target]]:
        found = [pair for pair in pairs if template.why_not(*pair) is None]
        assert found, "no workload here is served"
        return found

    def refused(self: object) -> list[tuple[Workload, Target]]:
        return [pair for pair in pairs if template.why_not(*pair) is not None]

    members = {"template": template, "served": served, "refused": refused}
    return type(name, (TemplateContract,), members)


for target in (detect_cpu(2), cuda_target("sm_90a")):
    for template in templates_for(target):
        contract = contract_of(template, target)
        globals()[contract.__name__] = contract
del contract
