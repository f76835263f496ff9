"""What holds for all tests."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

for package in ("spaces", "measure", "costmodel", "scheduler"):
    pytest.register_assert_rewrite(f"tilewright.{package}.testing")

# Before NumPy is loaded: its BLAS's threads wait by spinning, on the cores that other tests need.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

settings.register_profile(  # the same examples each time, on machines of any speed
    "steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from tests.lanes import Lanes

    return Lanes(config, log)


def pytest_terminal_summary(terminalreporter):
    """Say where a long run spent its time."""
    from tests.durations import summary

    found = terminalreporter.stats.values()
    reports = (each for some in found for each in some if hasattr(each, "duration"))
    for line in summary(reports):
        terminalreporter.write_line(line)


@pytest.fixture(scope="session", autouse=True)
def _children_hear_signals() -> None:
    """Also where these tests run under ``nohup`` or in a shell's background: what is ignored stays
    ignored in children, but what is handled is theirs to decide."""
    heard = {signal.SIGHUP: lambda *_: None, signal.SIGINT: signal.default_int_handler}
    for number, handler in heard.items():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.fixture(scope="session", autouse=True)
def _kernels_that_run_here() -> Iterator[None]:
    from tests.foreign_isa import skip_what_cannot_run

    with pytest.MonkeyPatch.context() as patch:
        skip_what_cannot_run(patch)
        yield
