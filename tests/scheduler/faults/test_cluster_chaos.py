"""A tuning run on a cluster whose processes are killed: it ends as if nothing had happened."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial

import pytest

pytest.importorskip("ray", reason="needs the extra ray")

from tests.measure.cluster.nodes import CODE, OPTIONS, cluster
from tests.measure.cluster.simulated import HOST_SERVICES, SimulatedBuilder, SimulatedRunner
from tests.scheduler.listed import Listed
from tilewright.measure.cluster.executor import RayExecutor
from tilewright.measure.database import Database
from tilewright.measure.executor import LocalExecutor
from tilewright.scheduler.testing.landscape import hills
from tilewright.scheduler.tuning.tuner import Tuner

NODES, TRIALS, STEP = 3, 200, 25
SLOW = pytest.mark.slow


@pytest.fixture(scope="module")
def nodes() -> Iterator:
    with cluster(NODES) as made:
        yield made


class Chaos:
    """Kills something after every few trials, as a seed says: workers and nodes."""

    def __init__(self, nodes, executor, seed: int) -> None:
        self.nodes, self.executor, self.random = nodes, executor, random.Random(seed)
        harms = [self.kill_workers, self.kill_a_worker, self.kill_workers, self.kill_raylet]
        self.random.shuffle(harms)
        self.harms = [*harms, self.add_node, self.remove_node]
        self.done: list[str] = []

    def __call__(self, progress) -> None:
        if self.harms and progress.trials >= STEP * (len(self.done) + 1):
            harm = self.harms.pop(0)
            self.done.append(harm.__name__)
            harm()

    def pids(self) -> list[int]:
        """Of the workers that are ready, in random order."""
        with self.executor._outcomes.changed:
            members = self.executor._dispatcher.fleet.members()
            found = [member.pid for member in members if member.ready]
        self.random.shuffle(found)
        return found

    def kill_a_worker(self) -> None:
        self.kill(self.pids()[:1])

    def kill_workers(self) -> None:
        self.kill(self.pids()[:2])

    def kill(self, pids) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def kill_raylet(self) -> None:
        self.random.choice(sorted(self.nodes.worker_nodes, key=id)).kill_raylet()

    def remove_node(self) -> None:
        node = self.random.choice(sorted(self.nodes.worker_nodes, key=id))
        self.nodes.remove_node(node, allow_graceful=False)

    def add_node(self) -> None:
        self.nodes.add_node(num_cpus=2, wait=False, **OPTIONS)


def tuned(executor, database, seed, trials, on_progress=None, size=512):
    space = hills(size)
    listed = partial(Listed, seed=seed)
    tuner = Tuner(space.workload, space.target, database, executor, listed, spaces=[space])
    return tuner.run(trials, 240.0, on_progress=on_progress)


def scores(database, size=512) -> dict:
    """Of each schedule what the search saw; each has one record."""
    space = hills(size)
    records = [
        record.measurement
        for record in database.records(space.workload, space.target)
        if record.measurement.round == "search"
    ]
    counts = Counter(m.schedule for m in records)
    assert set(counts.values()) == {1}
    return {m.schedule: m.score for m in records}


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=SLOW) for n in (1, 2, 3))])
def test_kills_change_nothing_of_what_is_found(nodes, seed, tmp_path):
    """A run that is left in peace, and one under :class:`Chaos`."""
    undisturbed, disturbed = Database(tmp_path / "one.db"), Database(tmp_path / "two.db")
    with closing(LocalExecutor(hills().target, 1, SimulatedBuilder(), SimulatedRunner(0.0))) as one:
        expected = tuned(one, undisturbed, seed, TRIALS)
    with closing(RayExecutor(nodes.address, host_services=HOST_SERVICES, code=CODE)) as executor:
        chaos = Chaos(nodes, executor, seed)
        found = tuned(executor, disturbed, seed, TRIALS, chaos)
    assert not chaos.harms
    assert found.trials == TRIALS
    assert found.lost == 0
    assert scores(disturbed) == scores(undisturbed)
    assert len(scores(disturbed)) == TRIALS
    assert found.best.schedule == expected.best.schedule


@SLOW
def test_jobs_share_what_is_left_of_the_workers_fairly(nodes, tmp_path):
    """Neither falls far behind, whatever is killed, and each candidate of both ends once."""
    database, sizes = Database(tmp_path / "t.db"), (256, 512)
    trials = dict.fromkeys(sizes, 0)
    least: list[int] = []  # trials of the one behind whenever one ended

    with closing(RayExecutor(nodes.address, host_services=HOST_SERVICES, code=CODE)) as executor:
        chaos = Chaos(nodes, executor, 4)

        def tune(size: int) -> None:
            def note(progress) -> None:
                trials[size] = progress.trials
                if size == sizes[0]:
                    chaos(progress)

            found = tuned(executor, database, 4, TRIALS, note, size)
            least.append(min(trials.values()))
            assert (found.trials, found.lost) == (TRIALS, 0)

        with ThreadPoolExecutor() as threads:
            other = threads.submit(tune, sizes[1])
            tune(sizes[0])  # here: only the main thread may start nodes
            other.result()
    assert not chaos.harms
    assert all(len(scores(database, size)) == TRIALS for size in sizes)
    assert least[0] >= TRIALS // 2
