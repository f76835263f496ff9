"""Where candidates are measured, as the command line says: on this machine, or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from spaces.errors import InputError
from spaces.target import Target, detect_target

if TYPE_CHECKING:
    from measure.cluster.executor import RayExecutor
    from measure.cluster.status import DriverStatus
    from measure.interfaces import Executor


class ExecutorName(StrEnum):
    """Who builds and measures."""

    LOCAL = "local"
    RAY = "ray"


TargetNames = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        help="cpu, cuda (the GPU here), or a named one: cuda:sm_90a. Several with --executor ray.",
        show_default="cpu",
    ),
]
ExecutorOption = Annotated[
    ExecutorName,
    typer.Option("--executor", help="local: this machine; ray: the workers of a Ray cluster."),
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="HOST:PORT",
        help="The Ray cluster: HOST:PORT, ray://HOST:PORT, or auto, the one that runs here.",
        show_default="one of this machine alone",
    ),
]
Insecure = Annotated[
    bool,
    typer.Option("--insecure-cluster", help="Allow a cluster that asks nobody for a token."),
]


@dataclass(frozen=True)
class Place:
    """Targets, and who measures on them: a ``cluster``, or this machine if None.

    ``is_here`` says whether it is this machine's hardware in any case.
    """

    targets: tuple[Target, ...]
    cluster: RayExecutor | None = None
    is_here: bool = True

    def status(self) -> DriverStatus | None:
        """What the workers of a cluster do; None of this machine."""
        return None if self.cluster is None else self.cluster.status()

    @contextmanager
    def executor(self, target: Target) -> Iterator[Executor]:
        """Who measures on ``target``."""
        if self.cluster is not None:
            yield self.cluster
            return
        from scheduler.defaults import local_executor

        with closing(local_executor(target)) as executor:
            yield executor


@contextmanager
def place(
    names: Sequence[str],
    threads: int | None,
    executor: ExecutorName = ExecutorName.LOCAL,
    address: str | None = None,
    insecure: bool = False,
) -> Iterator[Place]:
    """Where to measure on the targets called ``names``; :class:`InputError` if that cannot be."""
    if executor is ExecutorName.LOCAL:
        yield _this_machine(names, threads, address, insecure)
        return
    kinds = tuple(dict.fromkeys(_kind(name) for name in names))
    if threads is not None and "cpu" not in kinds:
        raise InputError(f"threads={threads} is for the target cpu, not {', '.join(names)}")
    from measure.cluster.executor import RayExecutor
    from measure.cluster.plan import Needs

    needs = Needs(kinds, 1 if threads is None else threads)
    with closing(RayExecutor(address, needs, insecure)) as cluster:
        yield Place(chosen(names, cluster.targets()), cluster, is_here=address is None)


def chosen(names: Sequence[str], offered: Sequence[Target]) -> tuple[Target, ...]:
    """The targets among those ``offered`` that go by ``names``; :class:`InputError` for a name that
    none goes by."""
    found: dict[str, Target] = {}
    for name in names:
        kind, _, variant = name.partition(":")
        matching = [
            target
            for target in offered
            if target.kind == kind and variant in ("", getattr(target, "name", ""))
        ]
        if not matching:
            there_are = "; ".join(target.summary for target in offered)
            raise InputError(f"no worker has the target {name}; they have: {there_are}")
        found |= {target.fingerprint: target for target in matching}
    return tuple(found.values())


def _this_machine(
    names: Sequence[str], threads: int | None, address: str | None, insecure: bool
) -> Place:
    if address is not None or insecure:
        option = "--address" if address is not None else "--insecure-cluster"
        raise InputError(f"{option} is for a cluster; allowed with: --executor ray")
    if len(names) > 1:
        raise InputError(
            f"{len(names)} targets ({', '.join(names)}), but this machine measures on one at a "
            "time; allowed: one --target, or --executor ray"
        )
    return Place((detect_target(names[0], threads),))


def _kind(name: str) -> str:
    """The kind of the target called ``name``; :class:`InputError` for a name that nobody has."""
    return name if name in ("cpu", "cuda") else detect_target(name).kind
