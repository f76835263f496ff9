"""One kernel serves sequences of any length up to that of its arrays: lengths come with a call."""

from __future__ import annotations

import numpy as np
import pytest

from tests.spaces.chained_programs import made
from tests.spaces.cpu.chained.test_template import TARGET, kernels
from tests.spaces.cpu.native import compile_kernels, complaint
from tilewright.spaces.workloads.workload import Workload

KEYS = 200
SEEN = "y[b,h,i,e] = sum[j](softmax[j](sum[d](q[b,h,i,d] * k[b,h // 2,j,d])) * v[b,h // 2,j,e])"
LENGTHS = f"n: int32[b](index < {KEYS + 1})\n"
PROGRAMS = {
    "a cache that grows": f"{LENGTHS}where j < n[b]\n{SEEN}",
    "the last queries of ragged sequences": f"{LENGTHS}where j <= n[b] - 5 + i\n{SEEN}",
}


def workload_of(name: str) -> Workload:
    return Workload("program", (), made(PROGRAMS[name], i=5, j=KEYS), "")


def with_lengths(w: Workload, lengths: tuple[int, int], hidden: float) -> dict:
    """Inputs whose keys beyond the lengths are ``hidden``."""
    inputs = w.make_inputs(0)
    for operand in ("k", "v"):
        for b, length in enumerate(lengths):
            inputs[operand][b, :, min(max(length, 0), KEYS) :] = hidden
    return inputs | {"n": np.array(lengths, np.int32)}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_kernel_serves_all_lengths_and_reads_nothing_beyond(name, tmp_path):
    w = workload_of(name)
    made_kernels = kernels(w, 4)
    library = compile_kernels(made_kernels, TARGET, tmp_path)
    for lengths in ((5, 200), (6, 64), (200, 33), (129, 128)):
        inputs = with_lengths(w, lengths, hidden=np.nan)
        found = [complaint(k, library, w, 1, inputs) for k in made_kernels]
        assert found == [""] * len(found), lengths


def test_a_cache_may_be_empty_and_lengths_beyond_it_are_those_of_all_of_it(tmp_path):
    w = workload_of("a cache that grows")
    made_kernels = kernels(w, 4)
    library = compile_kernels(made_kernels, TARGET, tmp_path)
    for lengths in ((0, 1), (-7, 2**31 - 1), (KEYS + 1, -(2**31))):
        inputs = with_lengths(w, lengths, hidden=0.5)
        found = [complaint(k, library, w, 1, inputs) for k in made_kernels]
        assert found == [""] * len(found), lengths


def test_sequences_without_an_axis_of_queries_have_one_each(tmp_path):
    text = "y[b,e] = sum[j](softmax[j](sum[d](q[b,d] * k[b,j,d])) * v[b,j,e])"
    w = Workload("program", (), made(f"{LENGTHS}where j < n[b]\n{text}", j=KEYS), "")
    made_kernels = kernels(w, 4)
    library = compile_kernels(made_kernels, TARGET, tmp_path)
    assert [complaint(k, library, w, 1) for k in made_kernels] == [""] * len(made_kernels)
