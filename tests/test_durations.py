"""The report of where a run spends its time."""

from __future__ import annotations

from types import SimpleNamespace

from tests.durations import LEAST, summary


def report(nodeid: str, duration: float, process: str = "") -> SimpleNamespace:
    node = {"node": SimpleNamespace(gateway=SimpleNamespace(id=process))} if process else {}
    return SimpleNamespace(nodeid=nodeid, duration=duration, **node)


def test_seconds_are_added_by_process_folder_and_file() -> None:
    reports = [
        report("tests/measure/cuda/kernels/test_a.py::test_b[c::d]", LEAST, "gw0"),
        report("tests/measure/cuda/kernels/test_a.py::test_e", 2.0, "gw1"),
        report("tests/test_f.py::test_g", 1.0),
    ]
    lines = [line.split() for line in summary(reports)]
    whole = f"{LEAST + 2:.1f}"
    assert lines == [
        ["seconds", "by", "process"],
        [f"{LEAST:.1f}", "gw0"],
        ["2.0", "gw1"],
        ["1.0", "this"],
        ["seconds", "by", "folder"],
        [whole, "tests/measure/cuda"],
        ["1.0", "tests"],
        ["seconds", "by", "file"],
        [whole, "tests/measure/cuda/kernels/test_a.py"],
        ["1.0", "tests/test_f.py"],
    ]


def test_a_short_run_says_nothing() -> None:
    assert list(summary([report("tests/test_a.py::test_b", LEAST - 1)])) == []
