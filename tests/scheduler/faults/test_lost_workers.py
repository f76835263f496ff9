"""A tuning run all of whose workers are gone says so, not that it was too short."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import closing
from threading import Thread

import pytest

pytest.importorskip("ray", reason="needs the extra ray")

from tests.measure.cluster.nodes import CODE, OPTIONS, cluster
from tests.measure.cluster.simulated import ENDLESS_HOST_SERVICES, TARGET, WORK
from tests.scheduler.cli.command import one_line
from tilewright.measure.cluster.executor import RayExecutor
from tilewright.scheduler.cli.executors import Executors
from tilewright.scheduler.cli.job import Request, RunOptions, run_requests
from tilewright.scheduler.cli.options import Format
from tilewright.scheduler.tuning.budget import Budget
from tilewright.scheduler.tuning.runs import abandoned

GONE = r"no worker is alive that measures on cpu made up, .*; the only one ended: \w.*\w"


def kill_once_at_work(executor: RayExecutor, node) -> None:
    """The node, as soon as a run worker has something to do."""
    while not any(w.role == "run" and w.state == "busy" for w in executor.status().workers):
        time.sleep(0.05)
    node.kill_raylet()


@pytest.fixture(scope="module")
def head() -> Iterator:
    """A cluster whose only node lends nothing."""
    with cluster(num_cpus=0) as made:
        yield made


@pytest.mark.parametrize(("seconds", "patience"), [(10.0, 30.0), (600.0, 3.0)])
def test_a_run_without_workers_says_so_and_how_they_ended(
    tmp_path, capsys, monkeypatch, head, seconds, patience
):
    monkeypatch.setattr(abandoned, "TOLD_SECONDS", 1.0)
    monkeypatch.setattr(abandoned, "PATIENCE_SECONDS", patience)
    run_options = RunOptions(str(tmp_path / "t.db"), None, Format.JSON, quiet=True, verbose=False)
    request = Request(WORK, TARGET, Budget(100, seconds, None), 0, "5f2c91ab")
    node = head.add_node(num_cpus=2, **OPTIONS)
    executor = RayExecutor(head.address, host_services=ENDLESS_HOST_SERVICES, code=CODE)
    with closing(executor):
        killer = Thread(target=kill_once_at_work, args=(executor, node))
        killer.start()
        executors = Executors((TARGET,), executor, head.address)
        with pytest.warns(RuntimeWarning, match=f"^{GONE}.* s unless one comes$"):
            code = run_requests([request], run_options, executors)
        killer.join()
    head.remove_node(node, allow_graceful=False)
    assert code == 1
    said = one_line(capsys.readouterr().err)
    after, then = (r"0:\d\d", "; to go on: .*") if seconds > 60 else (r"0:1\d", "")
    says = f"no kernel was measured in {after}; {GONE}{then}"
    assert re.fullmatch(rf"tilewright: {says}\n", said), said
