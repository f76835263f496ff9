"""NumPy's product takes part in the rounds of a comparison, and outlives none of its runners."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest

from tests.measure.cpu.c_kernels import candidate, good, measured, product, target
from tilewright.measure.busy import CORES, LOAD, WAITED
from tilewright.measure.cpu.cores import usable_cpus
from tilewright.measure.cpu.rival import Rival, Rivals
from tilewright.measure.cpu.runner import CRunner
from tilewright.measure.estimates import rival_samples
from tilewright.measure.records.measurement import NUMPY, ErrorKind, Job, Status
from tilewright.measure.timing import FINAL
from tilewright.spaces.operators import workload


class Lasting(CRunner):
    """A runner of several comparisons, whoever closes it after one."""

    def close(self) -> None:
        pass

    def end(self) -> None:
        super().close()


@pytest.fixture
def runner() -> Iterator[Lasting]:
    made = Lasting(target())
    yield made
    made.end()


def processes() -> list[int]:
    """Those of rivals, below this one."""
    found = []
    for p in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # which has ended meanwhile, or is a zombie
            if "tilewright.measure.cpu.rival" in p.cmdline() and "python" in p.name():
                found.append(p.pid)
    return found


def compare(*candidates, runner: Lasting, **options):
    return measured(candidates, runner, **{"final": True, "rivals": (NUMPY,)} | options)


def test_each_finalist_has_the_times_of_its_own_rounds(runner: Lasting) -> None:
    slow = candidate("slow", lambda p: f"for (int i = 0; i < 30; i++) {{ {p} }}")
    found = compare(good(), slow, runner=runner)
    for measurement in found:
        assert measurement.ok, measurement.error_text
        theirs, own = rival_samples(measurement, NUMPY)
        assert FINAL.samples <= len(theirs) <= FINAL.samples * 3 // 2
        assert tuple(own) == measurement.samples
        assert 1e-7 < min(theirs) < 1e-2
        known = WAITED in measurement.info or {LOAD, CORES} <= measurement.info.keys()
        assert known, measurement.info
    assert rival_samples(found[0], NUMPY)[0] == rival_samples(found[1], NUMPY)[0]
    assert found[0].score < found[1].score


def test_it_stays_for_the_next_comparison_and_ends_with_the_runner() -> None:
    runner = Lasting(target())
    compare(good(), runner=runner)
    [first] = processes()
    compare(good(), runner=runner)
    assert processes() == [first]
    other = product(24, 24, 24)
    [found] = compare(candidate("good", lambda p: p, other), runner=runner)
    assert rival_samples(found, NUMPY)[0]
    [second] = processes()
    assert second != first
    runner.end()
    patience = time.monotonic() + 10
    while processes() and time.monotonic() < patience:
        time.sleep(0.01)
    assert processes() == []
    assert Rivals(1, False, [0]).of(Job("test", other, target()), 0) is None


@pytest.mark.parametrize("options", [{"final": False, "rivals": ()}, {"rivals": ()}])
def test_nobody_is_timed_who_is_not_asked_for(runner: Lasting, options) -> None:
    [found] = compare(good(), runner=runner, **options)
    assert found.ok
    assert rival_samples(found, NUMPY) == ([], [])
    assert processes() == []


def test_what_numpy_has_no_product_for_has_no_rival() -> None:
    rivals = Rivals(1, False, [0])
    for text in ("softmax r=8 c=8", "matmul m=8 n=8 k=8 dtype=bfloat16"):
        assert rivals.of(Job("test", workload(text), target(), rivals=(NUMPY,)), 0) is None
    rivals.close()


def test_a_rival_that_dies_costs_no_finalist(runner: Lasting) -> None:
    compare(good(), runner=runner)
    [process] = processes()
    os.kill(process, signal.SIGKILL)
    for _ in range(2):
        [found] = compare(good(), runner=runner)
        assert found.ok, found.error_text
        assert rival_samples(found, NUMPY) == ([], [])
    assert processes() == []


def test_a_rival_that_stands_still_costs_no_finalist(runner: Lasting) -> None:
    compare(good(), runner=runner)
    [process] = processes()
    os.kill(process, signal.SIGSTOP)
    [found] = compare(good(), runner=runner)
    assert found.ok, found.error_text
    assert rival_samples(found, NUMPY) == ([], [])


def test_candidates_do_not_have_its_channel(runner: Lasting) -> None:
    """One socket is open in the process of each, and that is its own."""
    counted = (
        "int open_sockets = 0; struct stat s;"
        "for (int d = 3; d < 64; d++) open_sockets += !fstat(d, &s) && S_ISSOCK(s.st_mode);"
        "if (open_sockets > 1) C[7] += 1;"
    )
    prelude = "#include <sys/stat.h>\n#include <unistd.h>\n"
    nosy = candidate("nosy", lambda p: f"{p} {counted}", outside=prelude)
    [found] = compare(nosy, runner=runner)
    assert found.ok, found.error_text


def test_a_finalist_that_crashes_leaves_the_others_their_rival(runner: Lasting) -> None:
    crashing = candidate(
        "crash", lambda p: f"static int call; if (++call > 9) *(volatile int *)0 = 0; {p}"
    )
    crash, right = compare(crashing, good(), runner=runner)
    assert (crash.status, crash.error_kind) == (Status.ERROR, ErrorKind.CRASH)
    assert right.ok
    assert rival_samples(right, NUMPY)[0]


@pytest.mark.skipif(usable_cpus() < 2, reason="needs two cores")
def test_several_threads_are_timed_by_the_wall_clock_on_their_cores() -> None:
    runner = Lasting(target(2))
    try:
        [found] = compare(candidate("good", lambda p: p, on=target(2)), runner=runner)
        assert (found.ok, found.clock) == (True, "wall")
        assert rival_samples(found, NUMPY)[0]
        [process] = processes()
        assert len(os.sched_getaffinity(process)) == 2
    finally:
        runner.end()


def test_a_rival_that_cannot_start_is_none() -> None:
    rival = Rival(product(), 1, False, 0, [0])
    rival._keeper.kill()
    assert rival.process() is None
    rival.close()
    rival.close()
