"""Tables are asked whether their kernels are built, those that take rows at each call included."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from tilewright.scheduler.answer import Provenance
from tilewright.scheduler.dispatch.family import family_of
from tilewright.scheduler.dispatch.open_kernels import open_function
from tilewright.scheduler.dispatch.profile import as_profile
from tilewright.scheduler.dispatch.table import OpenRange, Row, Table, TableKernel
from tilewright.scheduler.torch.backend.tables import are_built
from tilewright.spaces.backends import backend
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import as_target

PROFILE = as_profile("1-8:1")
FAMILY = family_of("matmul n=40 k=24", "m", PROFILE)


@pytest.mark.parametrize("name", ["cpu:threads=1", "cuda:sm_90a"])
def test_a_table_is_built_with_its_open_kernels(name, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    target = as_target(name)
    space = space_for(FAMILY.at(8), target)
    schedules = map(space.schedule, space.sample(np.random.default_rng(0), 64))
    schedule = next(s for s in schedules if space.why_not_open(s, "m") is None)
    kernel = TableKernel(8, 1e-6, schedule, (OpenRange(8, schedule),))
    table = Table(FAMILY, target, PROFILE, (kernel,), (Row(1, 8, 8),), 0.0, 0.0, 1)
    assert not are_built(table, target)
    backend(target.kind).part("function")(space, schedule, Provenance.MEASURED)
    assert not are_built(table, target)
    assert open_function(FAMILY, 8, schedule, target) is not None
    assert are_built(table, target)
