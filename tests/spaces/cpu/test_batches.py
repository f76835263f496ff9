"""Batches of products on CPUs: what kernels of both kinds compute, and mistakes that must show."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.kernels import rewritten
from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import compile_kernels, complaint
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import templates_for
from tilewright.spaces.space import Space
from tilewright.spaces.template import Template
from tilewright.spaces.workloads.workload import Workload

CASES = {
    "primes": {"batch": 3, "m": 37, "n": 29, "k": 31},
    "operands by batch": {
        "batch": 5, "m": 17, "n": 53, "k": 129, "b": "col",
        "epilogue": "relu(x + bias[n]) + r[batch,m,n] * s[batch]",
    },
    "heads that share": {
        "batch": 2, "heads": 3, "m": 23, "n": 19, "k": 41, "a": "col", "c": "col",
        "dtype": "bfloat16", "epilogue": "x + t[heads,m]",
    },
    "heads of a token together": {
        "batch": 2, "heads": 3, "m": 23, "n": 21, "k": 18, "a": "m-batch-heads-k",
        "b": "n-batch-k", "c": "m-batch-heads-n", "dtype": "bfloat16", "epilogue": "x + bias[n]",
    },
    "all share": {
        "heads": 7, "m": 18, "n": 19, "k": 40, "a": "col", "dtype": "bfloat16", "out": "float32",
    },
    "two axes of the batch": {
        "outer": 2, "batch": 3, "m": 23, "n": 19, "k": 41, "a": "outer-m-batch-k",
        "b": "outer-n-batch-k", "c": "outer-m-batch-n", "epilogue": "x + mask[outer,m,n]",
    },
    "few rows": {"batch": 7, "m": 3, "n": 67, "k": 130},
    "few rows by dots": {
        "batch": 7, "m": 3, "n": 67, "k": 130, "b": "col", "dtype": "bfloat16",
        "epilogue": "x + d[batch,n]",
    },
}  # fmt: skip


def spaces(w: Workload, threads: int) -> list[Space]:
    """A space of each template that serves ``w``."""
    target = dataclasses.replace(this_cpu(), threads=threads)
    usual = [template for template in templates_for(target) if not template.last_resort]
    serving: list[type[Template]] = [t for t in usual if not t.why_not(w, target)]
    assert serving
    return [Space(w, target, [template(w, target)]) for template in serving]


@pytest.mark.parametrize(
    ("name", "threads"),
    [
        pytest.param(name, threads, marks=[pytest.mark.slow] * (threads != (1, 4)[place % 2]))
        for place, name in enumerate(CASES)
        for threads in (1, 4)
    ],
)
def test_random_schedules_agree_with_the_reference(name, threads, tmp_path):
    w = workload("matmul", **CASES[name])
    for space in spaces(w, threads):
        rows = np.unique(space.sample(np.random.default_rng(threads), 4), axis=0)
        kernels = [space.lower(space.schedule(row)) for row in rows]
        library = compile_kernels(kernels, space.target, tmp_path)
        for kernel, row in zip(kernels, rows, strict=True):
            problem = complaint(kernel, library, w, 5)
            assert not problem, f"{w} with {space.schedule(row)}: {problem}"


WRONG = {
    "a batch for a row": ("1147 * n0;", "31 * n0;"),
    "a product's step off by one": ("899 * n0;", "900 * n0;"),
    "the first product for all": (
        "= (const float *)call->buffers[1] + 899 * n0;",
        "= call->buffers[1];",
    ),
    "the neighbour's matrix": ("899 * n0;", "899 * ((n0 + 1) % 3);"),
    "one product too few": ("n0 < 3", "n0 < 2"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_mistakes_are_found(mistake, tmp_path):
    """In the text of a kernel of one thread."""
    w = workload("matmul", **CASES["primes"])
    (space,) = spaces(w, 1)
    kernel = space.lower(space.schedule(space.sample(np.random.default_rng(0), 1)[0]))
    right, wrong = WRONG[mistake]
    assert right in kernel.source.body, kernel.source.body
    broken = rewritten(kernel, kernel.source.body.replace(right, wrong))
    library = compile_kernels([broken], space.target, tmp_path)
    assert complaint(broken, library, w, 5)


@pytest.mark.parametrize("name", CASES)
def test_quantities_count_all_products(name):
    w = workload("matmul", **CASES[name])
    for space in spaces(w, 4):
        population = space.sample(np.random.default_rng(1), 100)
        quantities = space.quantities(population)
        assert (quantities["useful_flops"] == w.flops).all()
        assert (quantities["flops"] >= w.flops).all()
        assert (quantities["main_bytes"] >= w.least_bytes).all()
        assert (quantities["imbalance"] >= 1).all()
        assert (quantities["parallelism"] <= 4).all()
