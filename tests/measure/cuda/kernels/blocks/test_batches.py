"""Batches of products on the emulator: kernels of every template, and mistakes that must show."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels import rewritten
from tilewright.measure.cuda.emulator import verify
from tilewright.measure.cuda.emulator.emulator import INTERLEAVINGS
from tilewright.measure.cuda.trusted.products import expect
from tilewright.spaces.cuda.blocks import batch
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.numerics.allowance import allowed
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import templates_for
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.workload import Workload

PRIMES = {
    "batch": 3, "m": 41, "n": 37, "k": 67, "dtype": "bfloat16", "b": "col",
    "epilogue": "relu(x + bias[n]) + r[batch,m,n] * s[batch]",
}  # fmt: skip
HEADS = {
    "batch": 2, "heads": 3, "m": 40, "n": 48, "k": 72, "dtype": "float16", "a": "col", "c": "col",
    "epilogue": "x + t[heads,m]",
}  # fmt: skip
TOGETHER = {
    "batch": 2, "heads": 3, "m": 40, "n": 48, "k": 72, "dtype": "bfloat16",
    "a": "m-batch-heads-k", "b": "n-batch-k", "c": "m-batch-heads-n", "epilogue": "relu(x)",
}  # fmt: skip
APART = {
    "outer": 2, "batch": 3, "m": 40, "n": 48, "k": 72, "dtype": "bfloat16",
    "a": "outer-m-batch-k", "b": "outer-n-batch-k", "c": "outer-m-batch-n",
    "epilogue": "x + mask[outer,m,n]",
}  # fmt: skip
ALL_SHARE = {"heads": 3, "m": 24, "n": 40, "k": 72, "dtype": "bfloat16", "c": "col"}
FEW = {
    "batch": 5, "m": 3, "n": 72, "k": 136, "dtype": "bfloat16", "b": "col",
    "epilogue": "x + d[batch,n]",
}  # fmt: skip
CASES = {
    "simt, primes": ("simt", PRIMES),
    "mma, primes": ("mma", PRIMES),
    "mma, heads that share": ("mma", HEADS),
    "hopper, heads that share": ("hopper", HEADS),
    "hopper, all share": ("hopper", ALL_SHARE),
    "mma, heads of a token together": ("mma", TOGETHER),
    "hopper, heads of a token together": ("hopper", TOGETHER),
    "simt, two axes of the batch": ("simt", APART),
    "mma, two axes of the batch": ("mma", APART),
    "hopper, two axes of the batch": ("hopper", APART),
    "thin, two axes of the batch": ("thin", APART | {"m": 3}),
    "thin, primes": ("thin", FEW),
}


def kernels(name: str, work: Workload, count: int) -> list[Kernel]:
    """Of schedules at random; the depth is shared in some."""
    target = cuda_target("sm_90a")
    (template,) = (t for t in templates_for(target) if t.name == name)
    assert template.why_not(work, target) is None
    space = Space(work, target, [template(work, target)])
    population = space.sample(np.random.default_rng(7), 64)
    splits = np.array([space.schedule(row).values["splits"] > 1 for row in population])
    chosen = [*population[~splits][: count - 1], *population[splits][:1]]
    return [space.lower(space.schedule(row)) for row in chosen]


@pytest.mark.parametrize("case", CASES)
def test_random_schedules_compute_every_product(emulator, case):
    name, parameters = CASES[case]
    work = workload("matmul", **parameters)
    made = kernels(name, work, 2)
    emulator.build(made)
    for kernel in made:
        assert not verify(emulator, work, kernel, INTERLEAVINGS[:1]).error_text


WRONG = {
    "a batch for a row": ("mma", "left + 2747 * (i64)blockIdx.z", "left + 67 * (i64)blockIdx.z"),
    "a product's step off by one": ("mma", "1517 * (i64)blockIdx.z", "1518 * (i64)blockIdx.z"),
    "the neighbour's matrix": (
        "mma", "2479 * (i64)blockIdx.z", "2479 * (((i64)blockIdx.z + 1) % 3)",
    ),
    "the first matrix for all": ("mma", "whole_right + 2479 * (i64)blockIdx.z", "whole_right"),
    "the neighbour's shared matrix": ("hopper", ", number / 3)", ", (number + 1) / 3 % 2)"),
    "heads for products": ("hopper", ", number / 3)", ", number % 2)"),
    "the neighbour's head": (
        "hopper, apart", ", number % 3, number / 3)", ", (number + 1) % 3, number / 3)",
    ),
    "a head for a batch": ("hopper, apart", "% 3, number / 3)", "% 3, number % 2)"),
    "a product too few": ("hopper", "int work = (int)blockIdx.x", "int work = 1 + (int)blockIdx.x"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", WRONG)
def test_mistakes_are_found(emulator, mistake):
    name, right, wrong = WRONG[mistake]
    parameters = {"mma": PRIMES, "hopper": HEADS, "hopper, apart": APART}[name]
    work = workload("matmul", **parameters)
    kernel = kernels(name.split(",")[0], work, 2)[0]
    assert right in kernel.source.body
    broken = rewritten(kernel, kernel.source.body.replace(right, wrong, 1))
    assert verify(emulator, work, broken, INTERLEAVINGS[:1]).error_text


@pytest.mark.parametrize("parameters", [PRIMES, HEADS])
def test_what_a_device_allows_is_what_the_host_allows(emulator, parameters):
    work = workload("matmul", **parameters)
    kernel, inputs = expect(work), work.make_inputs(3)
    (found,) = emulator.run(kernel, inputs).outputs.values()
    for end, bounds in zip(
        found, allowed(work.matmul, work.matmul.contract(inputs), inputs), strict=True
    ):
        np.testing.assert_allclose(end, bounds, 1e-6)


GROUPED = workload("conv2d n=2 c=24 h=7 w=8 o=24 r=3 s=3 padding=1 groups=3 dtype=float16")
LAUNCHED = {
    "simt": workload("matmul", **PRIMES),
    "mma": workload("matmul", **PRIMES),
    "thin": workload("matmul", **FEW),
    "mma, groups of a convolution": GROUPED,
}


@pytest.mark.parametrize("case", LAUNCHED)
def test_x_numbers_products_that_z_cannot(emulator, case, monkeypatch):
    work, name = LAUNCHED[case], case.split(",")[0]
    before = [kernel.call.launches[0] for kernel in kernels(name, work, 2)]
    monkeypatch.setattr(batch, "MOST_PRODUCTS", 2)
    made = kernels(name, work, 2)
    emulator.build(made)
    for kernel, was in zip(made, before, strict=True):
        (launch,) = kernel.call.launches
        assert was.grid[2] > 2
        assert launch.grid == (was.grid[0] * was.grid[2], was.grid[1], 1)
        assert not verify(emulator, work, kernel, INTERLEAVINGS[:1]).error_text


@pytest.mark.slow
def test_more_products_than_z_can_number(emulator):
    size = {"m": 8, "n": 8, "k": 8, "dtype": "bfloat16"}
    work = workload("matmul", batch=batch.MOST_PRODUCTS + 2, **size)
    kernel, _ = kernels("mma", work, 2)
    assert not verify(emulator, work, kernel, INTERLEAVINGS[:1]).error_text


def test_small_products_of_a_large_batch_have_schedules():
    target = cuda_target("sm_90a")
    for side in (4, 8, 16):
        many = workload("matmul", m=side, n=side, k=8, batch=100_000, dtype="bfloat16")
        serving = [t for t in templates_for(target) if t.why_not(many, target) is None]
        assert {t.name for t in serving} >= {"simt", "mma", "thin"}
        for template in serving:
            space = Space(many, target, [template(many, target)])
            assert len(space.sample(np.random.default_rng(0), 4)), template.name


def test_what_cannot_be_is_refused_in_words():
    target = cuda_target("sm_90a")
    uneven = workload("matmul", m=8, n=8, k=12, batch=2, dtype="bfloat16")
    assert (
        "24 bytes apart"
        in {t.name: t.why_not(uneven, target) for t in templates_for(target)}["hopper"]
    )
