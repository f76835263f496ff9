"""The nodes and workers of a cluster, as they are and as they should be. Pure.

Each node is asked for its facts, then given its workers. A worker that died is started again: at
once if it had worked, and after ever longer pauses if it never did. Actions are given as commands
of :mod:`measure.cluster.transport.relay`. Times are Unix times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tilewright.measure.cluster.driver.plan import Needs, Node, WorkerPlan, workers_of
from tilewright.measure.cluster.facts import Facts, read_facts
from tilewright.measure.records.fields import Fields
from tilewright.measure.records.jsonl import parse_json
from tilewright.spaces.target import Target, target_from_json

LEAST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds, before somebody who failed is asked again

Commands = list[dict[str, Any]]


@dataclass(eq=False)
class Peer:
    """A node that is asked for its facts, or a worker that is asked to begin, again if it fails."""

    failures: int = 0
    due_at: float = 0.0
    asked: bool = False
    ready: bool = False
    why: str = ""  # it failed, when last

    def ask(self) -> None:
        """Note that it is being asked."""
        self.asked, self.ready = True, False

    def answer(self) -> None:
        """Note that it is ready."""
        self.ready, self.failures, self.why = True, 0, ""

    def fail(self, why: str, now: float) -> None:
        """Note that it did not answer, or is gone."""
        pause = 0.0 if self.ready else min(LONGEST_PAUSE, LEAST_PAUSE * 2.0**self.failures)
        self.asked, self.ready, self.why, self.due_at = False, False, why, now + pause
        self.failures += 1

    @property
    def settled(self) -> bool:
        """Tell whether it is known to work, or known to fail."""
        return self.ready or self.failures > 0


@dataclass(eq=False)
class FleetWorker(Peer):
    """A worker of the fleet: ``id`` is that of its present life, ``target`` a run worker's
    device."""

    plan: WorkerPlan = field(default_factory=lambda: WorkerPlan("", "", ""))
    facts: Facts | None = None
    id: str = ""
    host: str = ""
    device: str = ""
    pid: int = 0
    done: int = 0  # candidates, in this life
    target: Target | None = None


@dataclass(eq=False)
class _Host(Peer):
    """A node and its workers."""

    node: Node = field(default_factory=lambda: Node("", "", 0, 0, 0))
    facts: Facts | None = None
    members: list[FleetWorker] = field(default_factory=list)


class Fleet:
    """The nodes of a cluster and their workers, for what a driver ``needs``."""

    def __init__(self, needs: Needs) -> None:
        self._needs = needs
        self._hosts: dict[str, _Host] = {}
        self._lives = 0

    def see(self, nodes: Sequence[Node]) -> list[str]:
        """Take over the present nodes; returns the ids of workers that went with lost nodes."""
        known = {node.id: node for node in nodes}
        gone = [m.id for id, h in self._hosts.items() if id not in known for m in h.members]
        self._hosts = {id: self._hosts.get(id, _Host(node=node)) for id, node in known.items()}
        return gone

    def due(self, now: float) -> Commands:
        """Return the commands that are due: which nodes and workers to ask now."""
        commands: Commands = []
        for host in self._hosts.values():
            if not host.asked and host.due_at <= now:
                host.ask()
                commands.append({"do": "scout", "node": host.node.id})
            for member in host.members:
                if not member.asked and member.due_at <= now:
                    commands.append(self._start(member))
        return commands

    def learn(self, node: str, text: str) -> None:
        """A node told its facts: its workers are due. :class:`InputError` if these are no good."""
        host = self._hosts.get(node)
        if host is not None:
            host.facts = facts = read_facts(text)
            plans = workers_of(host.node, facts, self._needs)
            host.members = [FleetWorker(plan=plan, facts=facts) for plan in plans]
            host.answer()

    def greet(self, id: str, text: str) -> FleetWorker | None:
        """Note that a worker began, and return it; None if it is none of ours any more."""
        member = self.member(id)
        if member is None:
            return None
        fields = Fields(parse_json(text))
        member.host, member.device = fields.prose("host"), fields.prose("device")
        member.pid, target = fields.integer("pid"), fields.take("target")
        member.target = None if target is None else target_from_json(target)
        fields.finish()
        member.answer()
        return member

    def credit(self, id: str, count: int) -> None:
        """A worker has done so many candidates: whatever was wrong with it is over."""
        member = self.member(id)
        if member is not None:
            member.done, member.why = member.done + count, ""

    def remark(self, id: str, why: str) -> None:
        """A worker lives, but this is wrong with it."""
        member = self.member(id)
        if member is not None:
            member.why = why

    def fail(self, id: str, why: str, now: float) -> None:
        """A node could not be asked, or a worker died or did not begin."""
        asked = self._hosts.get(id) or self.member(id)
        if asked is not None:
            asked.fail(why, now)

    def member(self, id: str) -> FleetWorker | None:
        """Return the worker of that id, if it lives."""
        return next((m for m in self.members() if m.id == id and m.asked), None)

    def members(self) -> Iterator[FleetWorker]:
        """List all workers that there should be."""
        return (member for host in self._hosts.values() for member in host.members)

    @property
    def settled(self) -> bool:
        """Tell whether every node and worker is known to work, or known to fail."""
        hosts = self._hosts.values()
        return bool(hosts) and all(a.settled for a in (*hosts, *self.members()))

    def reasons(self) -> list[str]:
        """Say why nodes and workers failed, each reason once."""
        hosts = self._hosts.values()
        failed = [asked.why for asked in (*hosts, *self.members())]
        lacking = [host.facts.lacking for host in hosts if host.facts is not None]
        return list(dict.fromkeys(filter(None, (*failed, *lacking))))

    def hardware(self) -> str:
        """Describe the CPUs and GPUs of all nodes in words."""
        nodes = [host.node for host in self._hosts.values()]
        cpus, gpus = sum(node.cpus for node in nodes), sum(node.gpus for node in nodes)
        return f"{cpus} CPU{'s' * (cpus != 1)} and {gpus or 'no'} GPU{'s' * (gpus > 1)}"

    def _start(self, member: FleetWorker) -> dict[str, Any]:
        member.ask()
        member.done = 0
        self._lives += 1
        member.id = f"{member.plan.name}#{self._lives}"
        return {"do": "start", "worker": member.id, "plan": asdict(member.plan)}
