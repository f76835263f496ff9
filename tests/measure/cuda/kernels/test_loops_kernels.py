"""Kernels of plain loops on the emulator: programs of every kind, and planted bugs."""

from __future__ import annotations

import pytest

from tests.measure.cuda.emulator.planting import Case, deferred
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tests.spaces.loops.programs import SERVED, text_of
from tilewright.measure.cuda.nvrtc import NvrtcBuilder
from tilewright.measure.records.measurement import Candidate, Job
from tilewright.spaces.cuda.loops.template import CudaLoops
from tilewright.spaces.cuda.staged.template import StagedLoops
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.target import detect_target
from tilewright.spaces.testing.template import TemplateContract, silent_rules

TARGETS = [cuda_target("sm_90a"), cuda_target("sm_80")]


@deferred
def case(text: str, threads: int, sharing: int, target=TARGETS[0]) -> Case:
    w = workload(text)
    space = Space(w, target, [CudaLoops(w, target)])
    decided = (("threads", threads), ("reduction_threads", sharing))
    return w, space.lower(Schedule("loops", decided))


SHARED = {
    "a range of a table": 8,
    "a range of pointers": 32,
    "a softmax": 32,
    "the least place": 128,
    "a loss": 8,
    "a product of all": 8,
}
CASES = {
    **{name: case(text_of(name), 64, 1) for name in SERVED},
    **{f"{n}, shared": case(text_of(n), 128, sharing) for n, sharing in SHARED.items()},
    "8 bits without their instructions": case(text_of("bits of 8"), 64, 8, TARGETS[1]),
    "a product of matrices": case("matmul m=5 n=6 k=7 dtype=int8", 64, 1),
}
BUGS = {
    "no barrier": ("a softmax, shared", r"tw::sync_block\(\);", ""),
    "no barrier between halves": ("the least place, shared", r"\}\n\s+tw::sync_block\(\);", "}"),
    "a half is left out": ("the least place, shared", r"half = 64;", "half = 32;"),
    "places are forgotten": ("the least place, shared", r"place = elsewhere;", ""),
    "terms twice": ("a product of all, shared", r"r \+= 8", "r += 7"),
    "the last element is not written": ("a cumulative sum", r"if \(mine < 36", "if (mine < 35"),
    "a hidden term counts": ("a cumulative sum", r"if \(!\(.*?\)\) continue;", ""),
    "the end of another range": ("a range of a table", r"<= i0\) high", "< i0) high"),
    "the first of a range is left out": ("a range of pointers", r"r = low;", "r = low + 1;"),
    "a range beyond its end": ("a range of pointers", r"(i64 high = .*);", r"\1 - 1;"),
    "the row beside that of a table": ("a table in a sum", r"\* 5 \+ i2", "* 5 + 1 + i2"),
}


class TestLoopsKernels(KernelContract):
    cases, bugs = CASES, BUGS


class TestStagedLoops(TemplateContract):
    template = StagedLoops

    def served(self):
        names = ("a loss", "a table in a sum", "quantised")
        return [(workload(text_of(name)), target) for name in names for target in TARGETS]

    def refused(self):
        return [(workload(text_of("whole numbers")), TARGETS[0])]


class TestLoops(TemplateContract):
    template = CudaLoops

    def served(self):
        texts = [*map(text_of, SERVED), "matmul m=5 n=6 k=7 dtype=int8"]
        return [(workload(text), target) for text in texts for target in TARGETS]

    def refused(self):
        return [(workload("softmax r=4 c=4"), detect_target("cpu", 1))]


def test_every_rule_refuses_something():
    w = workload(text_of("a cumulative sum"))
    space = Space(w, TARGETS[0], [CudaLoops(w, TARGETS[0])])
    assert not silent_rules([space], 300)


@pytest.mark.parametrize("name", ["a softmax, shared", "bits of 8", "64 bits"])
def test_the_gpus_compiler_takes_them(name):
    for target in TARGETS:
        work, kernel = CASES[name]
        builder = NvrtcBuilder(target)
        try:
            candidate = Candidate(Job("test", work, target), Schedule("", ()), kernel)
            (built,) = builder.build([candidate])
            assert built.error_kind is None, built.error_text
        finally:
            builder.close()
