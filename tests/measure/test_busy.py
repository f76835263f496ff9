"""By what signs a machine is called busy."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tilewright.measure.busy import BUSY, CORES, LOAD, WAITED, why_busy
from tilewright.measure.estimates import pooled
from tilewright.measure.host import pressure
from tilewright.measure.host.pressure import Pressure
from tilewright.measure.records.measurement import Measurement
from tilewright.measure.testing.made_up import measured

STEADY = tuple(2e-4 * (1 + i / 1000) for i in range(25))


def seen(references: tuple[float, ...] = STEADY, clock: str = "cpu", **info: object) -> Measurement:
    made = replace(measured(1, 1e-3, "final"), reference_samples=references, clock=clock)
    return replace(made, info=info)


def test_a_machine_at_rest_is_not_called_busy() -> None:
    assert why_busy(seen()) == ""
    assert why_busy(seen(**{WAITED: 0.05})) == ""
    assert why_busy(seen(**{LOAD: 2.9, CORES: 2})) == ""
    assert why_busy(measured(1, 1.0)) == ""
    assert BUSY not in pooled([seen(), seen()]).info


def test_other_processes_are_a_sign() -> None:
    assert why_busy(seen(**{WAITED: 0.4})) == "processes waited for a processor 40 % of the time"
    assert why_busy(seen(**{LOAD: 8.12, CORES: 2})) == "a load of 8.1 on 2 cores"
    assert why_busy(seen(**{LOAD: 8.12, CORES: 2, WAITED: 0.1})) == "", "the load is of a minute"


def test_a_clock_that_changes_is_a_sign() -> None:
    slower = STEADY[:20] + tuple(1.3 * s for s in STEADY[20:])
    words = "the reference kernel took up to 30 % longer than at best"
    assert words[:32] in why_busy(seen(slower))
    assert why_busy(seen((*STEADY[:-1], 2e-3))) == "", "one sample says nothing"
    assert why_busy(seen(slower, clock="device")) == "", "the clock of a GPU follows its work"
    comparisons = [seen(STEADY), seen(tuple(1.3 * s for s in STEADY))]
    assert [why_busy(each) for each in comparisons] == ["", ""]
    told = pooled(comparisons).info[BUSY]
    assert told.startswith("the reference kernel took up to 3"), "from one comparison to the next"


@pytest.mark.parametrize("told", ["much", None, True, float("nan"), [1]])
def test_what_a_stranger_says_is_left_out(told: object) -> None:
    assert why_busy(seen(**{WAITED: told, LOAD: told, CORES: told})) == ""
    pooled([seen(**{WAITED: told}), seen(**{WAITED: told})])


def test_a_system_that_does_not_tell_is_no_error(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(pressure, "STALLED", tmp_path / "none")
    assert Pressure().share() is None
    told = tmp_path / "cpu"
    told.write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=many\n")
    monkeypatch.setattr(pressure, "STALLED", told)
    assert Pressure().share() is None


def test_waiting_is_a_share_of_the_time(tmp_path: Path, monkeypatch) -> None:
    told = tmp_path / "cpu"
    monkeypatch.setattr(pressure, "STALLED", told)
    line = "some avg10=0.00 avg60=0.00 avg300=0.00 total={}\nfull avg10=0.00 total=7\n"
    told.write_text(line.format(1000))
    still = Pressure()
    threading.Event().wait(0.01)
    assert still.share() == 0.0
    told.write_text(line.format(10**12))
    assert still.share() == 1.0
