"""How often the server calls a kernel, and what it makes of the times, by kernels that know their
own: they burn the seconds of the clock that counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.measure.cpu.c_kernels import PRELUDE, candidate, good, measured
from tilewright.measure.cpu import binaries
from tilewright.measure.cpu import runner as cpu_runner
from tilewright.measure.records.measurement import Candidate, ErrorKind, Measurement, Status
from tilewright.measure.timing import SEARCH

BURN = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <time.h>
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}
static void *burn(void *seconds) {
  double until = now() + *(double *)seconds;
  while (now() < until) continue;
  return NULL;
}
"""


def burning(seconds: str, then: str = "") -> Candidate:
    """A right kernel that takes so many seconds; C has the number of the call, from 1."""
    head = f"static int call; call++; double seconds = {seconds};"
    body = f"{head} %s burn(&seconds); {then}"
    return candidate("burning", lambda p: body.replace("%s", p), prelude=BURN + PRELUDE)


def test_a_candidate_is_sampled_within_the_budget_or_as_often_as_a_contender() -> None:
    [found] = measured([burning("5e-3")])
    assert found.ok, found.error_text
    assert len(found.samples) == SEARCH.contender_samples < SEARCH.samples


@pytest.mark.parametrize(
    ("final", "seconds", "calls"),
    [
        (False, "15e-3", 3),  # one checked, and two more as a contender
        (True, "0.1", 7),  # two checked, and five within the budget
    ],
)
def test_a_long_checked_call_is_a_sample_and_not_made_again(final, seconds, calls) -> None:
    late = f"if (call > {calls}) C[7] += 1;"
    [found] = measured([burning(seconds, then=late)], final=final)
    assert found.ok, found.error_text
    assert len(found.samples) == calls


def test_work_that_the_clock_does_not_see_is_not_believed() -> None:
    """A thread of the kernel's own does it, once it is timed."""
    elsewhere = (
        "pthread_t t; if (call > 2) pthread_create(&t, NULL, burn, &more), pthread_join(t, NULL);"
    )
    [found] = measured([burning("0", then=f"double more = 10e-3; {elsewhere}")])
    assert (found.status, found.error_kind) == (Status.ERROR, ErrorKind.CRASH)
    assert found.error_text.startswith("its process told of ")
    assert found.samples == ()


def test_time_that_was_lost_once_costs_no_candidate(tmp_path) -> None:
    """As where a busy host takes the processor away."""
    once = f'call > 2 && open("{tmp_path}/once", O_CREAT | O_EXCL, 0600) >= 0'
    elsewhere = f"if ({once}) pthread_create(&t, NULL, burn, &more), pthread_join(t, NULL);"
    [found] = measured([burning("0", then=f"double more = 0.5; pthread_t t; {elsewhere}")])
    assert found.ok, found.error_text
    assert (tmp_path / "once").exists()


def sampled(times: str, monkeypatch: pytest.MonkeyPatch) -> Measurement:
    """A good kernel where the reference kernel takes so long, C of the number of its call."""
    server = binaries._server()
    timer = server.sources["timer.c"].replace("double reference_seconds(", "double unused(")
    timer += (
        f"double reference_seconds(int wall) {{ static int call = -1; call++; return {times}; }}"
    )
    build = replace(server, sources={**server.sources, "timer.c": timer})
    path = build.file.program(build.compile)
    monkeypatch.setattr(cpu_runner, "server_binary", lambda: path)
    [found] = measured([good()])
    assert found.ok, found.error_text
    return found


def test_even_rounds_are_not_repeated(monkeypatch) -> None:
    found = sampled("1", monkeypatch)
    assert len(found.samples) == SEARCH.samples
    assert "disturbed_rounds" not in found.info


def test_disturbed_rounds_are_repeated_but_not_for_ever(monkeypatch) -> None:
    """The fourth and all later ones are slow; so are most of them, in the end."""
    found = sampled("call > 3 ? 2 : 1", monkeypatch)
    assert found.info["disturbed_rounds"] == SEARCH.samples // 2
    assert len(found.samples) == SEARCH.samples + SEARCH.samples // 2
