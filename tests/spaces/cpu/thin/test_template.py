"""The templates for products of few rows: their spaces, rules, and what their kernels compute."""

from __future__ import annotations

import dataclasses
import itertools
import random

import numpy as np
import pytest

from tests.pairwise import pairwise
from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import check_sampled, compile_kernels, complaint
from tilewright.spaces.cpu.blocked.template import BlockedTemplate
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.thin.template import Thin, ThinDots, ThinStream
from tilewright.spaces.language import program
from tilewright.spaces.operators import as_workload, workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.space import Space
from tilewright.spaces.testing.template import checked_quantities, silent_rules
from tilewright.spaces.workloads.workload import Workload

COLUMNS = (1, 5, 16, 33, 130, 257)
DEPTHS = (1, 7, 64, 129, 300, 600)
EPILOGUES = (
    "",
    "relu(x + bias[n])",
    "gelu(x + bias[m]) * scale[] + residual[m,n]",
    "select(x < bias[n], exp2(x * 0.1), log(abs(x) + 1)) + floor(x * 4)",
)
DTYPES = (("float32", "float32"), ("bfloat16", "bfloat16"), ("bfloat16", "float32"))
ORDERS = ("row", "col")
LAYOUTS = list(itertools.product(ORDERS, repeat=2))


def template_for(w: Workload, target: CpuTarget) -> Thin:
    (template,) = (t for t in (ThinStream, ThinDots) if t.refuses(w, target) is None)
    return template(w, target)


def space_of(w: Workload, target: CpuTarget) -> Space:
    return Space(w, target, [template_for(w, target)])


@pytest.mark.parametrize(("a", "b", "dtype", "out"), pairwise(*[ORDERS] * 2, DTYPES))
def test_random_schedules_agree_with_the_reference(a, b, dtype, out, tmp_path):
    seed = LAYOUTS.index((a, b)) * len(DTYPES) + DTYPES.index((dtype, out))
    threads = (1, 2, 4)[seed % 3]
    choose = random.Random(seed)
    target = dataclasses.replace(this_cpu(), threads=threads, cores=threads)
    for epilogue in EPILOGUES:
        m, n, k = choose.randint(1, 16), choose.choice(COLUMNS), choose.choice(DEPTHS)
        w = workload("matmul", m=m, n=n, k=k, a=a, b=b, dtype=dtype, out=out, epilogue=epilogue)
        check_sampled(space_of(w, target), 2, seed, tmp_path / w.digest)


def test_split_depth_adds_up_and_applies_the_epilogue_once(tmp_path):
    target = dataclasses.replace(this_cpu(), threads=4, cores=4)
    for b in ("row", "col"):
        w = workload("matmul", m=3, n=50, k=1000, b=b, epilogue="gelu(x + bias[n])")
        space = Space(w, target, [template_for(w, target)])
        split = [s for s in itertools.islice(space.enumerate(), 4000) if s["depth_workers"] == 4]
        kernels = [space.lower(schedule) for schedule in split[:: max(1, len(split) // 6)]]
        assert all(kernel.call.workspace_bytes >= 4 * 3 * 50 * 4 for kernel in kernels)
        folder = tmp_path / b
        folder.mkdir()
        library = compile_kernels(kernels, target, folder)
        assert [complaint(kernel, library, w, 0) for kernel in kernels] == [""] * len(kernels)


@pytest.mark.parametrize("vector_bytes", [16, 32])
@pytest.mark.parametrize("b", ["row", "col"])
def test_narrower_vectors(vector_bytes, b, tmp_path):
    if vector_bytes == 32 and this_cpu().isa not in ("avx2", "avx512"):
        pytest.skip("no AVX2 here")
    isa = {32: "avx2", 16: "generic"}[vector_bytes]
    target = dataclasses.replace(
        this_cpu(), isa=isa, vector_bytes=vector_bytes, vector_registers=16, bf16_dot=False
    )
    check_sampled(space_of(workload("matmul", m=5, n=45, k=77, b=b), target), 6, 0, tmp_path)


@pytest.mark.parametrize(
    ("template", "parameters", "words"),
    [
        (ThinStream, {"m": 17}, "at most 16 rows"),
        (ThinStream, {"b": "col"}, "contiguous along n"),
        (ThinDots, {"b": "row"}, "contiguous along k"),
        (ThinDots, {"b": "col", "dtype": "float64"}, "float64"),
    ],
)
def test_refusals_say_what_is_needed(template, parameters, words):
    w = workload("matmul", **({"m": 4, "n": 64, "k": 64} | parameters))
    assert words in template.refuses(w, this_cpu())


@pytest.mark.parametrize("template", [ThinStream, ThinDots])
def test_a_refused_dtype_comes_with_those_that_arrays_may_have(template):
    w = workload("matmul", m=4, n=64, k=64, dtype="float16")
    assert template.refuses(w, this_cpu()).endswith("is float16; allowed: float32, bfloat16")


@pytest.mark.parametrize("b", ["row", "col"])
@pytest.mark.parametrize("m", range(1, 17))
def test_a_thin_template_serves_every_shape_that_the_blocked_one_refuses(m, b):
    for n, k, registers in itertools.product((1, 40, 5000), (1, 100, 5000), (16, 32)):
        target = dataclasses.replace(this_cpu(), vector_registers=registers)
        w = workload("matmul", m=m, n=n, k=k, b=b)
        (template,) = space_for(w, target).templates.values()
        assert isinstance(template, Thin)
        assert space_for(w, target).count() > 0
    assert "more than 16" in BlockedTemplate.refuses(w, target)


@pytest.mark.parametrize(
    ("order", "template"), [("[j, l]", "thin_dots"), ("[l, j]", "thin_stream")]
)
def test_a_row_times_a_matrix_has_the_kernels_of_few_rows(order, template, tmp_path):
    axes = f"axes j=130, l=77\nw: float32{order}\n"
    text = f"s[j] = sum[l](x[l] * w{order})\ny[j] = gelu(s[j] + b[j]) + r[j]"
    space = space_for(as_workload(program(axes + text)), this_cpu())
    assert list(space.templates) == [template]
    check_sampled(space, 4, 0, tmp_path)


@pytest.mark.parametrize(("a", "template"), [("row", "thin_dots"), ("col", "thin_stream")])
def test_a_matrix_of_one_column_is_seen_as_a_row(a, template, tmp_path):
    w = workload("matmul", m=257, n=1, k=100, a=a, epilogue="relu(x + bias[m]) * scale[n]")
    space = space_for(w, this_cpu())
    assert list(space.templates) == [template]
    check_sampled(space, 4, 0, tmp_path)


@pytest.mark.parametrize(("b", "a"), [("row", "row"), ("col", "col"), ("row", "col")])
def test_every_rule_refuses_something_and_says_why(a, b):
    target = dataclasses.replace(this_cpu(), threads=4, cores=4)
    shapes = [(16, 40, 100), (1, 4096, 4096), (16, 4096, 100)]
    works = [workload("matmul", m=m, n=n, k=k, a=a, b=b) for m, n, k in shapes]
    spaces = [Space(w, target, [template_for(w, target)]) for w in works]
    silent = silent_rules(spaces, 500)
    assert not silent & {"registers", "latency", "threads", "idle_threads", "depth_share"}
    assert not silent & {"prefetch_streams", "reuse", "row_tiles", "block_depth"}
    assert "tile_width" not in silent or b == "col"
    assert not silent >= {"packing_needed", "packing_useful"}


@pytest.mark.parametrize("b", ["row", "col"])
def test_quantities_are_complete_and_possible(b):
    w = workload("matmul", m=4, n=1000, k=900, b=b, epilogue="relu(x)")
    target = dataclasses.replace(this_cpu(), threads=2, cores=2)
    space = Space(w, target, [template_for(w, target)])
    assert (checked_quantities(space, seed=0, schedules=300)["flops"] >= w.flops).all()


def quantities_of(dtype: str = "float32", b: str = "col", **changes: int) -> dict[str, float]:
    """Of some schedule for four rows, with changes."""
    w = workload("matmul", m=4, n=1000, k=4096, dtype=dtype, b=b)
    caches = {"l1_bytes": 32 << 10, "l2_bytes": 1 << 20, "l3_bytes": 32 << 20}
    target = dataclasses.replace(this_cpu(), threads=1, bf16_dot=True, **caches)
    template = template_for(w, target)
    space = Space(w, target, [template])
    values = space.schedule(space.sample(np.random.default_rng(0), 64)[0]).values | changes
    columns = {name: np.array([value]) for name, value in values.items()}
    return {name: float(v[0]) for name, v in template.quantities(columns).items()}


def test_what_is_larger_than_a_cache_is_read_again_for_each_tile_of_rows():
    right = 4 * 1000 * 4096
    tile = {"tile_rows": 2, "block_depth": 1024}  # 4 KiB of each column
    assert quantities_of(**tile, tile_columns=4)["near_bytes"] < 1.1 * right
    assert quantities_of(**tile, tile_columns=12)["near_bytes"] >= 2 * right


def test_a_loop_over_pairs_takes_half_the_trips():
    same = {"b": "row", "block_depth": 256, "unroll": 1}
    pairs, single = (quantities_of(dtype, **same) for dtype in ("bfloat16", "float32"))
    assert 2 * pairs["main_loop_trips"] == single["main_loop_trips"]
