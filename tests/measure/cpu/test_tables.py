"""Who may win is checked on tables of every kind: a bug in any tail kernel is always found."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.kernels import rewritten, written
from tilewright.measure.cpu.builder import CBuilder
from tilewright.measure.cpu.runner import CRunner
from tilewright.measure.records.measurement import Candidate, ErrorKind, Job, Measurement
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.windows.template import WindowsTemplate
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.target import detect_target
from tilewright.spaces.workloads.workload import Workload

TARGET = detect_target("cpu", threads=1)
FIXED = {"tile_rows": 7, "tile_vectors": 2, "order": "columns_outer", "unroll": 1}
FIXED |= {"row_workers": 1, "column_workers": 1, "batch_workers": 1, "pack_right": False}
FIXED |= {"block_depth": 128, "block_columns": 16}
TAIL = re.compile(r"^static [^;{]*_\dx24\([^{]*{.*?^}", re.M | re.S)
LAST_STORE = re.compile(r".*(tw_store_\w+\(s) \+ ", re.S)


def grouped() -> tuple[Workload, Kernel]:
    """A product of segments whose tiles have 1 to 7 rows, each by a function of its own."""
    w = workload("grouped_matmul t=70 n=24 k=20 experts=5")
    registers = {"vector_bytes": 64, "vector_registers": 32}
    target = replace(TARGET, isa="generic", bf16_dot=False, flags=("-O1",), **registers)
    template = WindowsTemplate(w, target)
    chosen = tuple((d.name, FIXED[d.name]) for d in template.decisions)
    return w, Space(w, target, [template]).lower(Schedule("windows", chosen))


def planted_in_each_tail(kernel: Kernel) -> list[Kernel]:
    """The kernel with a bug in one of its tails each: the last store goes before the row."""
    body = kernel.source.body
    found = []
    for tail in TAIL.finditer(body):
        if store := LAST_STORE.match(tail[0]):
            at = tail.start() + store.end(1)
            changed = f"{body[:at]} - {body[at + 3 :]}"
            found.append(rewritten(kernel, changed, f"bug{len(found)}"))
    return found


def measured(work: Workload, kernels: list[Kernel], **options: bool) -> list[Measurement]:
    target: CpuTarget = TARGET
    builder, runner = CBuilder(target), CRunner(target)
    job = Job("tables", work, target, **options)
    named = [Schedule("written", (("number", n),)) for n in range(len(kernels))]
    candidates = [Candidate(job, s, k) for s, k in zip(named, kernels, strict=True)]
    try:
        return runner.run(job, builder.build(candidates))
    finally:
        runner.close()
        builder.close()


@pytest.mark.parametrize("final", [False, True])
def test_a_bug_in_any_of_seven_tails_is_always_found(final):
    w, right = grouped()
    wrong = planted_in_each_tail(right)
    assert len(wrong) == 7
    for _ in range(3):
        first, *others = measured(w, [right, *wrong], final=final, thorough=True)
        assert first.ok, first.error_text
        assert first.score
        found = {ErrorKind.WRONG, ErrorKind.OUT_OF_BOUNDS, ErrorKind.CRASH}
        assert {m.error_kind for m in others} <= found, [m.error_text for m in others]
        assert all(m.score is None for m in others)


LENGTHS = workload('"n: int32[i](index < 99); where j < n[i]; y[i] = sum[j](x[i,j])" i=6 j=98')
SUMS = """
void {entry}(void *const *buffers, void *workspace, const void *runtime) {{
  const int *n = buffers[0];
  const float *x = buffers[1];
  float *y = buffers[2];
  for (int i = 0; i < 6; i++) {{
    double sum = 0;
    for (int j = 0; j < n[i]; j++) sum += x[98 * i + j];
    y[i] = {finished};
  }}
}}
"""
WRONG_LENGTHS = {
    "none": "n[i] == 0 ? 1 : sum",
    "one behind a tile": "n[i] == 33 ? sum + 9 : sum",
    "one before a tile": "n[i] == 63 ? sum + 9 : sum",
    "a remainder": "n[i] == 13 ? sum + 9 : sum",
    "all": "n[i] == 98 ? sum + 9 : sum",
    "all of all": "n[0] + n[1] + n[2] + n[3] + n[4] + n[5] == 588 ? sum + 9 : sum",
}


def test_lengths_of_which_one_is_wrong_are_always_found():
    def kernel(number: int, finished: str) -> Kernel:
        body = SUMS.format(entry=f"sums{number}", finished=finished)
        return written("c", f"sums{number}", body, LENGTHS.operands)

    kernels = [kernel(n, text) for n, text in enumerate(["sum", *WRONG_LENGTHS.values()])]
    right, *wrong = measured(LENGTHS, kernels, thorough=True)
    assert right.ok, right.error_text
    assert [m.error_kind for m in wrong] == [ErrorKind.WRONG] * len(wrong)
    assert any(m.error_text.endswith(")") and "(other inputs " in m.error_text for m in wrong)
