"""Keys in parts, which workers share: what the parts give is merged to what all keys give."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

from tests.spaces.chained_programs import form
from tests.spaces.cpu.chained.test_template import TARGET, complaints, space_of
from tests.spaces.cpu.native import check_bugs_are_found
from tilewright.spaces.cpu.chained.template import ChainedTemplate
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.workloads.workload import Workload


def split_kernels(w: Workload, values: Sequence[int] = (2, 4, 8)) -> list[Kernel]:
    """Kernels whose keys are in so many parts."""
    space = space_of(w)
    drawn = [space.schedule(row) for row in space.sample(np.random.default_rng(1), 400)]
    found = [next((s for s in drawn if s.values["splits"] == n), None) for n in values]
    return [space.lower(schedule) for schedule in found if schedule]


@pytest.mark.parametrize(
    "name",
    ["causal", "grouped heads", "rows without a key", "documents", "two weights", "log of the sum"],
)
def test_keys_in_parts_give_what_all_keys_give(name, tmp_path):
    w = Workload("program", (), form(name, i=7, j=200), "")
    made = split_kernels(w)
    assert len(made) > 1
    assert complaints(w, made, tmp_path) == []


SPLIT_BUGS = [  # name: (form, what is replaced in the source, by what)
    ("part_left_out", "log of the sum", r"part < 4;", "part < 3;"),
    ("part_twice", "log of the sum", r"first_key, part \* (\d+)L", r"first_key, part * \1L - 1"),
    (
        "sums_not_corrected",
        "log of the sum",
        r"const vf factor = [^;]*;",
        "const vf factor = tw_set(1);",
    ),
    ("state_not_corrected", "log of the sum", r"t1 = t1 \+ \(s1 \* [^;]*;", "t1 = t1 + s1;"),
    ("parts_of_another_row", "log of the sum", r"first_row \+ r\) (.*;\n +if)", r"r) \1"),
    ("no_key_is_seen", "rows without a key", r"if \(kept\[\d\] == 0.0f\) continue;", ""),
]


@pytest.mark.parametrize(("name", "which", "text", "other"), SPLIT_BUGS)
def test_bugs_planted_into_merging_are_found(name, which, text, other, tmp_path):
    w = Workload("program", (), form(which, i=7, j=200), "")
    (kernel,) = split_kernels(w, [4])
    inputs = w.make_inputs(0)
    for operand in ("q", "k"):
        inputs[operand] = inputs[operand] * 2
    check_bugs_are_found(kernel, {name: (text, other)}, w, TARGET, tmp_path, [inputs], count=0)


def test_a_kernel_of_one_thread_splits_no_keys():
    w = Workload("program", (), form("causal"), "")
    template = ChainedTemplate(w, dataclasses.replace(TARGET, threads=1, cores=1))
    assert "splits" not in {decision.name for decision in template.decisions}
