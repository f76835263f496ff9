"""What holds for all tests."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

for package in ("spaces", "measure", "costmodel", "scheduler"):
    pytest.register_assert_rewrite(f"tilewright.{package}.testing")

# Before NumPy is loaded: its BLAS's threads wait by spinning, on the cores that other tests need.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# The threads of PyTorch and XGBoost, which OpenMP starts, would do the same between their loops.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Inductor compiles a few programs to see which vectors work, for 20 s of CPU, and starts processes
# that load PyTorch once more, to compile in; here it believes the system, and compiles by itself.
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

settings.register_profile(  # the same examples each time, on machines of any speed
    "steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")

BEGAN = pytest.StashKey[float]()
"""When the first test of this process began."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from tests.lanes import Lanes

    return Lanes(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    said = "skip tests that would begin later than so many seconds after the first one"
    parser.addoption("--within", type=float, metavar="SECONDS", help=said)


def pytest_runtest_setup(item: pytest.Item) -> None:
    limit = item.config.getoption("within")
    began = item.config.stash.setdefault(BEGAN, time.monotonic())
    if limit is not None and time.monotonic() - began > limit:
        pytest.skip(f"left to make test: {limit:g} s are over")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector from going through thousands of tests again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000)
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    from tests.covering import cover_families

    cover_families(items)


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
