"""Measures what a cluster costs and gives: ``python -m experiments.cluster``; see README.md."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from experiments.cluster.dispatching import dispatch_rate
from tests.measure.cluster.nodes import CODE, cluster
from tests.measure.cluster.simulated import SimulatedBuilder, SimulatedRunner
from tilewright.measure.cluster.executor import RayExecutor
from tilewright.measure.database import Database
from tilewright.measure.executor import LocalExecutor
from tilewright.measure.interfaces import Executor
from tilewright.scheduler.defaults import default_search
from tilewright.scheduler.strategies.random_search import RandomSearch
from tilewright.scheduler.strategies.search import Search
from tilewright.scheduler.testing.landscape import hills
from tilewright.scheduler.tuning.tuner import Tuner
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.space import Space
from tilewright.spaces.target import detect_target

HERE = Path(__file__).parent
ALL_CODE = (*CODE, str(HERE / "devices.py"))
HOSTS = {1: "devices:Devices", 2: "devices:Two", 4: "devices:Four", 8: "devices:Eight"}
SLEEPING = {1: "devices:SleepingOne", 2: "devices:SleepingTwo"}
MANY = (1, 2, 4, 8, 64, 512)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=int, default=5000, help="zero-cost ones, each time")
    parser.add_argument("--memory", type=int, default=100_000, help="candidates; 0 leaves it out")
    parser.add_argument("--trials", type=int, default=256, help="of the job on both executors")
    parser.add_argument("--out", type=Path, default=HERE / "results.json")
    arguments = parser.parse_args()
    report: dict[str, Any] = {
        "machine": f"{detect_target('cpu').summary}, {os.cpu_count()} CPUs",
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
    }
    for name, measure in _figures(arguments):
        report[name] = measure()
        print(json.dumps({name: report[name]}), flush=True)
    arguments.out.write_text(json.dumps(report, indent=1) + "\n")


def _figures(arguments: argparse.Namespace) -> Iterator[tuple[str, Callable[[], Any]]]:
    count = arguments.candidates
    yield "candidates_per_s_without_ray", lambda: _rate(_simulated(), count)
    yield "evolved_candidates_per_s", lambda: _rate(_simulated(), count, evolved=True)
    yield "dispatcher_candidates_per_s_by_workers", lambda: {n: dispatch_rate(n) for n in MANY}
    yield "ray_candidates_per_s_by_workers", lambda: {n: _ray_rate(HOSTS[n], count) for n in HOSTS}
    yield "sleeping_candidates_per_s_by_workers", lambda: _sleeping()
    yield "start_to_first_candidate_s", _start
    yield "price_of_ray", lambda: _price(arguments.trials)
    if arguments.memory:
        yield "driver_megabytes_over_candidates", lambda: _memory(arguments.memory)


def _simulated() -> Executor:
    return LocalExecutor(hills().target, 1, SimulatedBuilder(), SimulatedRunner(0.0))


@contextmanager
def _tuner(executor: Executor, space: Space, search: Search | None = None) -> Iterator[Tuner]:
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(executor),
        Database(Path(folder) / "t.db") as database,
    ):
        make = None if search is None else lambda _: search
        yield Tuner(space.workload, space.target, database, executor, make, spaces=[space])


def _rate(executor: Executor, count: int, evolved: bool = False) -> float:
    """Candidates a second through a tuner, a search and SQLite."""
    space = hills()
    search = default_search(space, 0) if evolved else RandomSearch(space)
    with _tuner(executor, space, search) as tuner:
        result = tuner.run(count, 3600.0)
    return round(result.trials / result.seconds, 1)


def _ray_rate(host_services: str, count: int) -> float:
    with cluster(cpus=32) as made:
        return _rate(RayExecutor(made.address, host_services=host_services, code=ALL_CODE), count)


def _sleeping(count: int = 600) -> dict[str, float]:
    with cluster(cpus=32) as made:
        rates = {
            workers: _rate(
                RayExecutor(made.address, host_services=host_services, code=ALL_CODE), count
            )
            for workers, host_services in SLEEPING.items()
        }
    return {**{str(n): rate for n, rate in rates.items()}, "ratio": round(rates[2] / rates[1], 3)}


def _start() -> float:
    """Return the seconds from nothing to the first measured candidate on a local cluster."""
    began = time.monotonic()
    space = space_for(workload("matmul", m=64, n=64, k=64), detect_target("cpu"))
    first: list[float] = []

    def note(progress) -> None:
        if progress.trials and not first:
            first.append(time.monotonic() - began)

    with _tuner(RayExecutor(), space) as tuner:
        tuner.run(8, 60.0, on_progress=note)
    return round(first[0], 2)


def _price(trials: int) -> dict[str, float]:
    """Return the seconds of the same job by both executors, and what they find, after their
    start."""
    space = space_for(workload("matmul", m=256, n=256, k=256), detect_target("cpu"))
    figures = {}
    makers: Sequence[tuple[str, Callable[[], Executor]]] = (
        ("local", lambda: LocalExecutor(space.target)),
        ("ray", RayExecutor),
    )
    for name, make in makers:
        executor = make()
        with _tuner(executor, space) as tuner:
            result = tuner.run(trials, 600.0)
        figures[f"{name}_s"] = round(result.seconds, 2)
        figures[f"{name}_best_us"] = round(1e6 * result.best.score, 2) if result.best else 0.0
    return {**figures, "ratio": round(figures["ray_s"] / figures["local_s"], 3)}


def _memory(count: int, pieces: int = 10) -> list[float]:
    """Return the megabytes that the driver occupied at most after each tenth of so many
    candidates."""
    space, peaks = hills(), []

    def note(progress) -> None:
        if progress.trials >= (len(peaks) + 1) * count // pieces:
            peaks.append(round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1))

    with _tuner(_simulated(), space, RandomSearch(space)) as tuner:
        tuner.run(count, 3600.0, on_progress=note)
    return peaks


if __name__ == "__main__":
    main()
