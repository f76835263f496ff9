"""Right chained kernels by mma.sync: all forms of attention, hard cases of all kinds."""

from __future__ import annotations

from tests.measure.cuda.emulator.planting import Case, deferred
from tests.spaces.chained_programs import FORMS, SCORE, VALUE, form, made
from tilewright.spaces.cuda.chained.template import CudaChained
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.language import Program
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.workloads.workload import Workload

H200 = cuda_target("sm_90a")
PLAIN = {
    "query_storage": "shared",
    "columns": 32,
    "row_fragments": 1,
    "keys": 16,
    "warps": 2,
    "warp_splits": 1,
    "stages": 2,
    "blocks_per_sm": 1,
    "rescale": "always",
    "splits": 1,
    "merge": "kernel",
    "order": "rows",
}
HELD = {**PLAIN, "query_storage": "registers", "keys": 32, "stages": 3, "rescale": "late"}
WIDE = {**PLAIN, "row_fragments": 2, "warps": 1, "keys": 48, "order": "products"}
SPLIT = {**PLAIN, "splits": 3, "rescale": "late", "merge": "last"}
LATER = {**SPLIT, "merge": "kernel", "row_fragments": 2}
ALONE = {**PLAIN, "warps": 1, "warp_splits": 4, "stages": 3}
PAIRS = {**HELD, "warp_splits": 2, "keys": 16, "splits": 2, "merge": "last"}
TEAMS = {**PLAIN, "warps": 1, "row_fragments": 2, "warp_splits": 2, "rescale": "moved", "splits": 2}
CLUSTER = {**HELD, "keys": 16, "splits": 2, "merge": "cluster"}
SHARED = {**ALONE, "warp_splits": 2, "splits": 4, "merge": "cluster", "rescale": "moved"}
IN_CLUSTERS = {
    "log of the sum": CLUSTER,
    "causal": SHARED,
    "rows without a key": SHARED,
    "loss over a vocabulary": CLUSTER,
    "two weights": {**SHARED, "splits": 2},
}
IN_TEAMS = {
    "grouped heads": ALONE,
    "causal": PAIRS,
    "rows without a key": TEAMS,
    "documents": ALONE,
    "two weights": PAIRS,
    "loss over a vocabulary": TEAMS,
}


def dtype_of(name: str) -> str:
    """Weights without a bound need the range of bfloat16."""
    return "bfloat16" if name in ("no chain", "half precision", "two products") else "float16"


@deferred
def case(found: Program, values: dict) -> Case:
    """The kernel of a schedule of a program."""
    work = Workload("program", (), found, "")
    template = CudaChained(work, H200)
    columns = template.decisions[1].values[-1]
    return work, template.lower(Schedule("chained", tuple({**values, "columns": columns}.items())))


CASES = {
    f"{name}, {number}": case(form(name, dtype_of(name)), values)
    for number, name in enumerate(FORMS)
    for values in [(PLAIN, HELD, WIDE, SPLIT, LATER)[number % 5]]
}
CASES |= {
    f"{name} in teams": case(form(name, dtype_of(name)), values)
    for name, values in IN_TEAMS.items()
}
CASES |= {
    f"{name} in clusters": case(form(name, dtype_of(name)), values)
    for name, values in IN_CLUSTERS.items()
}
FLOAT8 = (
    "k: float8_e4m3fn[b,2,j,d]\nv: float8_e4m3fn[b,2,j,e]\n"
    "y[b,h,i,e] = sum[j](softmax[j](sum[d](q[b,h,i,d] * k[b,h // 2,j,d]) * scale[b,j] * 0.2) "
    "* u[b,j] * v[b,h // 2,j,e])"
)
CASES["keys in float8"] = case(made(FLOAT8, "bfloat16", e=40), ALONE)
CASES["one query of each sequence"] = case(
    made(
        "n: int32[b](index < 54)\nwhere j < n[b]\n"
        "y[b,e] = sum[j](softmax[j](sum[d](q[b,d] * k[b,j,d])) * v[b,j,e])",
        "float16",
    ),
    {**PLAIN, "warps": 1},
)
REACHED = f"y[b,h,i,e] = sum[j](softmax[j](0.5 * tanh({SCORE} / 0.5) + bias[j]) * {VALUE})"
CASES["softcap that is reached"] = case(made(REACHED, "float16"), HELD)
