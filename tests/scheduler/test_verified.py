"""``best(..., verify=True)``: kernels are checked before the first use."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from tilewright.measure.database import Database
from tilewright.measure.records.measurement import ErrorKind, Measurement, Status
from tilewright.measure.records.record import Record
from tilewright.scheduler.answer import Provenance
from tilewright.scheduler.best import best
from tilewright.scheduler.verification import Verdict
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.target import detect_target

FULL_DISK = """#!/bin/sh
case "$*" in *unit*.c*) echo "No space left on device" >&2; exit 1;; esac
exec gcc "$@"
"""
WORK = workload("matmul m=33 n=20 k=17")
SPACE = space_for(WORK, detect_target("cpu"))


def known(path: Path, count: int) -> list[Schedule]:
    """A database with so many schedules, the first the best."""
    schedules = [SPACE.schedule(row) for row in next(iter(SPACE.blocks()))[:count]]
    with Database(path) as database:
        for i, schedule in enumerate(schedules):
            seconds = (1 + i) * 1e-5
            measured = Measurement(schedule, Status.OK, seconds, (seconds,), started_at=1.0)
            version = SPACE.version_of(schedule)
            database.record(Record(WORK, SPACE.target, version, measured))
    return schedules


def failing(monkeypatch: pytest.MonkeyPatch, *wrong: Schedule) -> list[Schedule]:
    """Checks that find these wrong, or all if there are none; what was checked."""
    checked: list[Schedule] = []

    def measure(space: Space, schedules: list[Schedule]) -> list[Verdict]:
        checked.extend(schedules)
        (schedule,) = schedules
        if not wrong or schedule in wrong:
            return [Verdict(schedule, ErrorKind.WRONG, "C[0, 0] is 1, expected 2")]
        return [Verdict(schedule)]

    monkeypatch.setattr("tilewright.scheduler.verification.measure", measure)
    return checked


def test_a_right_kernel_passes_the_real_check(tmp_path: Path) -> None:
    first, *_ = known(tmp_path / "t.db", 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        function = best(WORK, "cpu", tmp_path / "t.db", verify=True)
    assert function.schedule == first
    a, b = np.ones((33, 17), np.float32), np.ones((17, 20), np.float32)
    np.testing.assert_array_equal(function(a, b), np.full((33, 20), 17, np.float32))


def test_a_wrong_kernel_is_passed_over_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, _ = known(tmp_path / "t.db", 3)
    checked = failing(monkeypatch, first)
    said = r"fails its check: wrong_result: C\[0, 0\] is 1.*; passed over: the measured schedule"
    with pytest.warns(RuntimeWarning, match=said):
        function = best(WORK, "cpu", tmp_path / "t.db", verify=True)
    assert function.schedule == second
    assert checked == [first, second]


def test_where_all_that_is_known_is_wrong_one_is_predicted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, *known(tmp_path / "t.db", 2))
    with pytest.warns(RuntimeWarning):
        function = best(WORK, "cpu", tmp_path / "t.db", verify=True)
    assert function.provenance == Provenance.PREDICTED


def test_where_no_kernel_is_right_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch)
    with (
        pytest.warns(RuntimeWarning),
        pytest.raises(InputError, match=r"no kernel for matmul .* passes its check; tried: 16"),
    ):
        best(WORK, "cpu", None, verify=True)


@pytest.mark.filterwarnings("error")
def test_where_the_machine_fails_no_kernel_is_called_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(tmp_path / "t.db", 3)
    compiler = tmp_path / "cc"
    compiler.write_text(FULL_DISK)
    compiler.chmod(0o700)
    monkeypatch.setenv("CC", str(compiler))
    with pytest.raises(InputError, match="this machine failed, not the kernel: No space left"):
        best(WORK, "cpu", tmp_path / "t.db", verify=True)


def test_nothing_is_checked_unless_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(tmp_path / "t.db", 1)
    checked = failing(monkeypatch)
    best(WORK, "cpu", tmp_path / "t.db")
    assert not checked


def test_a_plain_use_loads_no_measuring() -> None:
    code = (
        "import sys; from tilewright.scheduler.best import best; "
        "best('matmul m=8 n=8 k=8', 'cpu', None);"
        "sys.exit('tilewright.scheduler.verification' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
