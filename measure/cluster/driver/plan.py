"""Choose the workers of a node from its CPUs and GPUs. Pure.

A run worker owns a GPU or a slot of cores (:func:`measure.cluster.topology.slots`). It claims from
Ray as many cores as its kernels have threads. Workers are named after the hardware they own, so no
two candidates are ever timed on one core, even where several drivers share the cluster. Build
workers keep to the other cores. Where kernels need all cores, building and running take turns, as
they do on a single machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.measure.cluster.facts import Facts
from tilewright.measure.cluster.topology import cpus_of, slots

JOBS = 8  # compilers of a build worker at most
BYTES_PER_JOB = 1 << 30  # memory that a compiler takes at its worst


@dataclass(frozen=True)
class Node:
    """A node as Ray describes it: what of it may be claimed. Memory in bytes."""

    id: str
    address: str
    cpus: int
    gpus: int
    memory: int


@dataclass(frozen=True)
class Needs:
    """The kinds of targets that a driver wants to measure on, and the threads of CPU kernels."""

    kinds: tuple[str, ...] = ("cpu",)
    threads: int = 1


@dataclass(frozen=True)
class WorkerPlan:
    """A worker to be made: ``name`` is its own in the whole cluster, ``claim`` what it takes of
    Ray's resources, ``cpus`` where it is to stay (empty: anywhere)."""

    name: str
    role: str  # build or run
    node: str
    kind: str = ""  # of the device of a run worker
    cpus: tuple[int, ...] = ()
    jobs: int = 0
    takes_turns: bool = False
    claim: Mapping[str, float] = field(default_factory=dict)


def workers_of(node: Node, facts: Facts, needs: Needs) -> list[WorkerPlan]:
    """Return the workers that ``node`` gets."""
    running = list(_on_gpus(node, needs))
    running += _on_cores(node, facts, needs, _free(node, running))
    return [*running, *_building(node, facts, needs, _free(node, running))]


def _free(node: Node, workers: Sequence[WorkerPlan]) -> int:
    """Return the CPUs of ``node`` that ``workers`` leave to others."""
    return node.cpus - int(sum(worker.claim["CPU"] for worker in workers))


def _on_gpus(node: Node, needs: Needs) -> Iterator[WorkerPlan]:
    if "cuda" in needs.kinds:
        claim = {"GPU": 1.0, "CPU": 1.0 if node.cpus > node.gpus else 0.0}
        for i in range(node.gpus):
            yield WorkerPlan(f"run-{node.id}-gpu{i}", "run", node.id, "cuda", claim=claim)


def _on_cores(node: Node, facts: Facts, needs: Needs, free: int) -> Iterator[WorkerPlan]:
    if "cpu" not in needs.kinds or facts.cpu is None:
        return
    found = slots(facts.domains, needs.threads)
    for i, slot in enumerate(found):
        claim = min(len(cpus_of(slot[: needs.threads])), free)
        if claim < 1:
            return
        free -= claim
        yield WorkerPlan(
            f"run-{node.id}-cores{i}of{len(found)}",
            "run",
            node.id,
            "cpu",
            cpus_of(slot),
            takes_turns=_takes_turns(facts, needs),
            claim={"CPU": float(claim)},
        )


def _building(node: Node, facts: Facts, needs: Needs, free: int) -> Iterator[WorkerPlan]:
    if node.cpus < 1:
        return
    takes_turns = "cpu" in needs.kinds and _takes_turns(facts, needs)
    cores = _left_for_building(facts, needs)
    jobs = node.cpus if takes_turns else min(free, len(cores))
    jobs = max(1, min(jobs, node.memory // BYTES_PER_JOB))
    workers = 1 if takes_turns else -(-jobs // JOBS)
    for i in range(workers):
        share = jobs // workers + (i < jobs % workers)
        claim = float(share) if share <= free else 0.0
        free -= int(claim)
        yield WorkerPlan(
            f"build-{node.id}-{i}of{workers}",
            "build",
            node.id,
            cpus=cpus_of(cores),
            jobs=share,
            takes_turns=takes_turns,
            claim={"CPU": claim},
        )


def _left_for_building(facts: Facts, needs: Needs) -> list[tuple[int, ...]]:
    """Return the cores on which no kernel is timed; all, where none is left."""
    everything = [core for domain in facts.domains for core in domain]
    if "cpu" not in needs.kinds:
        return everything
    timed = {core for slot in slots(facts.domains, needs.threads) for core in slot[: needs.threads]}
    return [core for core in everything if core not in timed] or everything


def _takes_turns(facts: Facts, needs: Needs) -> bool:
    """Tell whether kernels that are timed by the wall clock need all cores of a domain."""
    if needs.threads == 1:
        return False
    return any(len(slot) <= needs.threads for slot in slots(facts.domains, needs.threads))
