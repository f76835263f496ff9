"""How many candidates a second a driver can hand out, by the number of its workers.

Nothing but the driver's own work is there: workers are made up, and answer at once.
"""

from __future__ import annotations

import json
import time
from collections import deque
from typing import Any

from measure.cluster.dispatcher import Dispatcher
from measure.cluster.facts import facts_text
from measure.cluster.plan import Needs
from measure.cluster.wire import build_answer, read_build_request, read_run_request, run_answer
from measure.measurement import Job
from tests.measure.cluster.simulated import (
    TARGET,
    WORK,
    SimulatedBuilder,
    SimulatedRunner,
    candidate,
)

OUTFIT = "tests.measure.cluster.simulated:Quick"
PER_WORKER, LEAST = 16, 2048


class Workers:
    """All nodes and workers of a cluster, each of which answers a command at once."""

    def __init__(self) -> None:
        self._builder, self._runner = SimulatedBuilder(), SimulatedRunner(0.0)
        self._facts = facts_text(OUTFIT)
        self._binaries: dict[int, list[bytes]] = {}

    def answer(self, command: dict[str, Any]) -> dict[str, Any] | None:
        """The event that a command leads to."""
        if command["do"] == "scout":
            return {**command, "event": "facts", "text": self._facts}
        if command["do"] == "start":
            run = command["plan"]["role"] == "run"
            target = TARGET.to_json() if run else None
            hello = {"host": "h", "pid": 1, "device": "made up", "target": target}
            return {**command, "event": "hello", "text": json.dumps(hello)}
        if command["do"] == "build":
            _, candidates = read_build_request(command["text"])
            text, self._binaries[command["task"]] = build_answer(self._builder.build(candidates))
            return {**command, "event": "built", "text": text}
        if command["do"] == "run":
            binaries = [self._binaries[build] for build in command["builds"]]
            job, built = read_run_request(command["text"], binaries)
            return {**command, "event": "ran", "text": run_answer(self._runner.run(job, built))}
        for build in command.get("builds", ()):
            del self._binaries[build]
        return None


def dispatch_rate(workers: int) -> float:
    """Candidates a second by a driver of so many run workers, its workers' own time left out."""
    dispatcher, cluster, job = Dispatcher(Needs()), Workers(), Job("one", WORK, TARGET)
    nodes = [
        {"id": f"n{i}", "address": "h", "cpus": 2, "gpus": 0, "memory": 8 << 30}
        for i in range(workers)
    ]
    total = max(LEAST, PER_WORKER * workers)
    candidates = [candidate(f"c{i}", job) for i in range(total)]
    events = deque([{"event": "nodes", "nodes": nodes}])
    spent, done = 0.0, 0
    while done < total:
        began, results = time.perf_counter(), []
        if events:
            results = dispatcher.take(events.popleft(), time.time())
        elif not done:
            dispatcher.submit(job, candidates)
            began = time.perf_counter()
        commands = list(dispatcher.commands(time.time()))
        done += len(results)
        spent += time.perf_counter() - began
        events.extend(filter(None, map(cluster.answer, commands)))
    return round(total / spent, 1)
