"""A node that is cut off from its cluster, for ever or for a while: all its work is done."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

pytest.importorskip("ray", reason="needs the extra ray")

from tests.measure.cluster.network import HERE, POSSIBLE, THERE, Hosts, hosts
from tests.measure.cluster.nodes import CODE, OPTIONS, cluster, members_on
from tests.measure.cluster.simulated import HOST_SERVICES, candidate
from tilewright.measure.cluster.executor import RayExecutor

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not POSSIBLE, reason="needs root, and ip(8)"),
]
WATCHFUL = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 300,
    "health_check_timeout_ms": 300,
    "health_check_failure_threshold": 5,
}
PATIENCE = 120.0


class Apart:
    """A cluster whose second node is on another host, and a driver with work for both."""

    def __init__(self, network: Hosts, nodes: Any, executor: RayExecutor) -> None:
        self.network, self.nodes, self.executor = network, nodes, executor
        self.ended: Counter[str] = Counter()
        self.sent = 0

    def start_node(self) -> Any:
        with self.network.there():
            return self.nodes.add_node(num_cpus=2, **{**OPTIONS, "node_ip_address": THERE})

    def work_until(self, condition) -> None:
        """Keep candidates waiting until the condition holds."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline
            if self.executor.pending() < 64:
                made = [candidate(f"c{self.sent + i}") for i in range(64)]
                self.executor.submit(made[0].job, made)
                self.sent += 64
            self.take()

    def finish(self) -> None:
        """Each candidate has ended, and once."""
        deadline = time.monotonic() + PATIENCE
        while self.executor.pending() and time.monotonic() < deadline:
            self.take()
        assert len(self.ended) == self.sent
        assert set(self.ended.values()) == {1}

    def take(self) -> None:
        results = self.executor.results(0.2)
        assert all(r.measurement.ok for r in results)
        self.ended.update(str(r.measurement.schedule) for r in results)

    def works(self, node: Any, more_than: int = 0) -> bool:
        """Whether the run worker of the node lives and has done so much."""
        running = [m for m in members_on(self.executor, node) if m.plan.role == "run"]
        return any(m.ready and m.done > more_than for m in running)


@contextmanager
def apart(**config: Any) -> Iterator[tuple[Apart, Any]]:
    with hosts() as network, cluster(node_ip_address=HERE, _system_config=config) as nodes:
        made = Apart(network, nodes, None)
        node = made.start_node()
        with closing(
            RayExecutor(nodes.address, host_services=HOST_SERVICES, code=CODE)
        ) as made.executor:
            yield made, node


def test_a_node_that_the_cluster_gives_up_costs_no_candidate_and_may_come_back():
    with apart(**WATCHFUL) as (run, node):
        run.work_until(lambda: run.works(node))
        run.network.cut()
        run.work_until(lambda: not members_on(run.executor, node))
        run.finish()
        run.network.mend()
        run.work_until(lambda: node.dead_processes())  # Ray ends what it gave up
        again = run.start_node()
        run.work_until(lambda: run.works(again))
        run.finish()


def test_a_node_that_is_away_for_30_seconds_works_on_when_it_is_back():
    with apart() as (run, node):
        run.work_until(lambda: run.works(node))
        run.network.cut()
        back = time.monotonic() + 30
        run.work_until(lambda: time.monotonic() > back)
        run.network.mend()
        [before] = [m.done for m in members_on(run.executor, node) if m.plan.role == "run"]
        run.work_until(lambda: run.works(node, before))
        run.finish()
