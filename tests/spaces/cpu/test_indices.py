"""Whatever an operand of indices holds, no CPU kernel leaves its arrays, and each one ends."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.kernels import planted
from tests.spaces.cpu import fenced
from tests.spaces.cpu.fenced import Fenced, apart
from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import QUICKLY, compile_kernels, complaint
from tests.spaces.index_programs import (
    COMPARED,
    PROGRAMS,
    SORTED,
    Inputs,
    beyond,
    made,
    unsorted,
)
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import part_of_space, space_for
from tilewright.spaces.workloads.workload import Workload

TARGET = dataclasses.replace(this_cpu(), threads=2, cores=2)
COUNT = 3
RESULTS = re.compile(r"$|\d+ wrong; at ")
"""What there is to say where nothing is wrong but results."""
SERVED = {
    "embedding": "map",
    "loss": "rows",
    "rows and columns": "map",
    "8 bits": "map",
    "a table of a table": "map",
    "normalised rows": "rows",
    "offsets": "map",
    "images": "rows",
    "rows of a factor": "windows",
    "beside a product": "staged",
    "lengths": "chained",
    "lengths of both ends": "chained",
    "pages": "chained",
    "slots of a cache": "chained",
    "a bias that is chosen": "chained",
    "documents": "chained",
    "one score": "chained",
    "segments": "windows",
    "segments of chosen rows": "windows",
    "more segments than rows": "windows",
}
"""The templates that serve each program on a CPU; the others read no indices."""


def outcomes(
    w: Workload, pairs: Iterable[tuple[Inputs, Inputs | None]], folder: Path
) -> Iterator[str]:
    """What is wrong with some kernels, called with the first inputs of each pair; their results are
    to be those of the second, if there are any."""
    first = next(iter(space_for(w, TARGET).templates))
    space = part_of_space(w, TARGET, [first]) or space_for(w, TARGET)
    rows = np.unique(space.sample(np.random.default_rng(1), 4 * COUNT), axis=0)
    kernels = [space.lower(space.schedule(row)) for row in rows[::4]]
    library = compile_kernels(kernels, TARGET, folder, *QUICKLY)
    for wild, near in pairs:
        for kernel in kernels:
            found = complaint(kernel, library, w, 0, wild, 0, near, Fenced, apart)
            if near is not None or not RESULTS.match(found):
                yield found


@pytest.mark.parametrize("name", [name for name in SERVED if name in (*PROGRAMS, *SORTED)])
def test_of_an_index_beyond_its_limits_the_nearest_entry_is_read(name, tmp_path):
    w = made(name, "float32")
    assert SERVED[name] in space_for(w, TARGET).templates
    found = list(outcomes(w, beyond(w), tmp_path))
    assert found
    assert not any(found), found


@pytest.mark.parametrize("name", [name for name in SERVED if name in COMPARED])
def test_indices_that_are_compared_may_be_any(name, tmp_path):
    w = made(name, "float32")
    assert list(space_for(w, TARGET).templates) == [SERVED[name]]
    assert not any(outcomes(w, [(wild, None) for wild, _ in beyond(w)], tmp_path))


@pytest.mark.parametrize("name", [name for name in SERVED if name in SORTED])
def test_a_table_that_falls_leads_nowhere_else(name, tmp_path):
    w = made(name, "float32")
    assert not any(outcomes(w, [(wild, None) for wild in unsorted(w)], tmp_path))


LEFT_ITS_ARRAYS = {
    "reads far away": "{ volatile float x = ((float *)buffers[0])[1L << 33]; }",
    "reads right behind": "{ volatile float x = ((float *)buffers[0])[48]; }",
    "writes far before": "((float *)buffers[2])[-(1L << 33)] = 1;",
    "never ends": "for (volatile int i = 0; i < 1; ) { }",
}


@pytest.mark.parametrize("name", LEFT_ITS_ARRAYS)
def test_kernels_that_leave_their_arrays_are_found(name, tmp_path, monkeypatch):
    monkeypatch.setattr(fenced, "SECONDS", 1)
    w = workload("y[i] = x[i] * v[i]", i=48)
    space = space_for(w, TARGET)
    right = space.lower(space.schedule(space.sample(np.random.default_rng(0), 1)[0]))
    call = r"  tw_call call = .*;"
    wrong = planted(right, call, rf"\g<0>\n  {LEFT_ITS_ARRAYS[name]}", entry="wrong")
    library = compile_kernels([right, wrong], TARGET, tmp_path)
    given = w.make_inputs(0)
    found = [complaint(k, library, w, 0, given, 0, None, Fenced, apart) for k in (right, wrong)]
    assert found[0] == ""
    assert "ended by" in found[1]
