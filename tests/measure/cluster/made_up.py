"""A made-up cluster for a dispatcher: hosts with workers that answer each command at once."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from tests.measure.cluster.simulated import TARGET, SimulatedBuilder, SimulatedRunner
from tilewright.measure.cluster.facts import facts_text
from tilewright.measure.cluster.wire import (
    build_answer,
    read_build_request,
    read_run_request,
    run_answer,
)

HOST_SERVICES = "tests.measure.cluster.simulated:Quick"


def nodes_event(*names: str) -> dict[str, Any]:
    """The event that these are the nodes of the cluster, of two cores each."""
    rest = {"address": "h", "cpus": 2, "gpus": 0, "memory": 8 << 30}
    return {"event": "nodes", "nodes": [{"id": name, **rest} for name in names]}


class Workers:
    """All workers of a cluster. Those of the nodes in ``slow`` take so many times as long."""

    def __init__(self) -> None:
        self.slow: dict[str, float] = {}
        self._builder, self._runner = SimulatedBuilder(), SimulatedRunner(0.0)
        self._facts = facts_text(HOST_SERVICES)
        self._nodes: dict[str, str] = {}  # of workers
        self._binaries: dict[int, list[bytes]] = {}

    def answer(self, command: dict[str, Any]) -> dict[str, Any] | None:
        """The event that a command leads to."""
        if command["do"] == "scout":
            return {**command, "event": "facts", "text": self._facts}
        if command["do"] == "start":
            return {**command, "event": "hello", "text": self._hello(command)}
        if command["do"] == "build":
            _, candidates = read_build_request(command["text"])
            text, self._binaries[command["task"]] = build_answer(self._builder.build(candidates))
            return {**command, "event": "built", "text": text}
        if command["do"] == "run":
            return {**command, "event": "ran", "text": self._run(command)}
        for build in command.get("builds", ()):
            self._binaries.pop(build, None)
        return None

    def node(self, command: dict[str, Any]) -> str:
        """Where the worker of a command is."""
        return self._nodes[command["worker"]]

    def _hello(self, command: dict[str, Any]) -> str:
        plan = command["plan"]
        self._nodes[command["worker"]] = plan["node"]
        target = TARGET.to_json() if plan["role"] == "run" else None
        return json.dumps(
            {"host": plan["node"], "pid": 1, "device": "made up", "target": target},
        )

    def _run(self, command: dict[str, Any]) -> str:
        binaries = [self._binaries[build] for build in command["builds"]]
        job, built = read_run_request(command["text"], binaries)
        node = self.node(command)
        slowness = self.slow.get(node, 1.0)
        return run_answer(
            replace(
                m,
                reference_samples=tuple(slowness * s for s in m.reference_samples),
                place=replace(m.place, host=node),
            )
            for m in self._runner.run(job, built)
        )
