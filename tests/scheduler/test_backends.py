"""A third kind of target is one record, and a template of one's own one class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from tests.kernels import written
from tilewright.costmodel.roofs.peaks import cpu_rates
from tilewright.measure.interfaces import Built
from tilewright.measure.records.measurement import Measurement, Status
from tilewright.scheduler.query import query
from tilewright.scheduler.tuning import pace
from tilewright.scheduler.tuning.tuner import tune
from tilewright.scheduler.verification import measure
from tilewright.spaces import backends, registry
from tilewright.spaces.cpu.abi import ABI_PRELUDE
from tilewright.spaces.errors import InputError
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.operators import workload
from tilewright.spaces.quantities import QUANTITIES
from tilewright.spaces.registry import register_template, space_for, templates_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target, detect_target, target_from_json, target_names
from tilewright.spaces.template import Decision, Template
from tilewright.spaces.workloads.product import product_of

WORK = workload("matmul m=5 n=7 k=3")


@pytest.fixture(autouse=True)
def _own_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is forgotten at its end."""
    monkeypatch.setattr(backends, "_BACKENDS", dict(backends._BACKENDS))
    monkeypatch.setattr(registry, "_REGISTERED", {})


class Plain(Template):
    """Three loops in C, in one of two orders."""

    name: ClassVar[str] = "plain"
    decisions = (Decision("rows_first", (True, False)),)
    rules = ()

    @classmethod
    def refuses(cls, workload, target):
        product = product_of(workload)
        return product if isinstance(product, str) else None

    def quantities(self, columns):
        return {name: np.ones(len(columns["rows_first"])) for name in QUANTITIES}

    def lower(self, schedule: Schedule) -> Kernel:
        m, n, k = self.workload.extents.values()
        rows, columns = f"for (int i = 0; i < {m}; ++i)", f"for (int j = 0; j < {n}; ++j)"
        loops = f"{rows} {columns}" if schedule["rows_first"] else f"{columns} {rows}"
        entry = self.entry(schedule)
        source = f"""
            void {entry}(void *const *buffers, void *workspace, const tw_runtime *runtime) {{
              const float *a = buffers[0], *b = buffers[1];
              float *c = buffers[2];
              {loops} {{
                float sum = 0;
                for (int l = 0; l < {k}; ++l) sum += a[i * {k} + l] * b[l * {n} + j];
                c[i * {n} + j] = sum;
              }}
            }}"""
        return written("c", entry, source, self.workload.operands, prelude=ABI_PRELUDE)


def test_a_template_of_ones_own_takes_part_in_spaces_and_is_measured() -> None:
    register_template("cpu", Plain)
    register_template("cpu", Plain)  # once more changes nothing
    target = detect_target("cpu", 1)
    assert templates_for(target).count(Plain) == 1
    space = space_for(WORK, target)
    own = [Schedule("plain", (("rows_first", first),)) for first in (True, False)]
    assert all(verdict.right for verdict in measure(space, own))


def test_two_templates_of_one_name_are_refused() -> None:
    register_template("cpu", Plain)

    class Other(Plain):
        pass

    with pytest.raises(InputError, match="a template 'plain' for cpu already"):
        register_template("cpu", Other)
    with pytest.raises(InputError, match="unknown kind of target 'tpu'; allowed: cpu, cuda"):
        register_template("tpu", Plain)


@dataclass(frozen=True)
class Abacus(Target):
    """A machine that takes as many seconds as it has beads."""

    kind: ClassVar[str] = "abacus"
    beads: int = 3

    @property
    def summary(self) -> str:
        return f"abacus of {self.beads} beads"

    def least_seconds(self, workload) -> float:
        return 0.0


class AbacusBuilder:
    """Has nothing to compile."""

    batch = 4

    def __init__(self, target: Abacus, jobs: int) -> None:
        pass

    def build(self, candidates):
        return [Built(candidate, b"") for candidate in candidates]

    def close(self) -> None:
        pass


class AbacusRunner:
    """Takes twice as long by columns."""

    def __init__(self, target: Abacus, device: int) -> None:
        self._beads = target.beads

    def run(self, job, built):
        schedules = [b.candidate.schedule for b in built]
        seconds = [float(self._beads * (1 if s["rows_first"] else 2)) for s in schedules]
        return [
            Measurement(schedule, Status.OK, score=t, samples=(t,), round=job.round)
            for schedule, t in zip(schedules, seconds, strict=True)
        ]

    def close(self) -> None:
        pass


def detect_abacus(variant: str, threads: int | None) -> Abacus:
    return Abacus(int(variant or 3))


VARIANTS, TEMPLATES, RATES, PACING, FUNCTION = ("5",), {"plain": Plain}, cpu_rates, pace.CPU, None


def test_a_third_kind_of_target_is_one_record(tmp_path) -> None:
    parts = {
        **{"target": "Abacus", "detect": "detect_abacus", "variants": "VARIANTS"},
        **{"templates": "TEMPLATES", "rates": "RATES", "builder": "AbacusBuilder"},
        **{"runner": "AbacusRunner", "pacing": "PACING", "function": "FUNCTION"},
    }
    places = {name: f"{__name__}:{own}" for name, own in parts.items()}
    backends.register(backends.Backend("abacus", **places))
    assert target_names()[-2:] == ("abacus", "abacus:5")
    target = detect_target("abacus:5")
    assert target_from_json(target.to_json()) == target == Abacus(5)
    database = tmp_path / "tuning.db"
    result = tune(str(WORK), target, trials=2, database=database)
    assert result.best is not None
    assert result.best.score == 5.0
    assert query(str(WORK), target, database).schedule["rows_first"] is True
