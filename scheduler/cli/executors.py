"""Open the executors that a command line names: of this machine, or of a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.scheduler.cli import completing
from tilewright.scheduler.cli.known_clusters import remember
from tilewright.spaces.cpu.target import CpuTarget, named_threads
from tilewright.spaces.errors import InputError
from tilewright.spaces.settings import default_threads
from tilewright.spaces.target import Target, detect_target

if TYPE_CHECKING:
    from tilewright.measure.cluster.executor import RayExecutor
    from tilewright.measure.cluster.status import DriverStatus
    from tilewright.measure.interfaces import Executor


class ExecutorName(StrEnum):
    """The kind of executor that builds and measures candidates."""

    LOCAL = "local"
    RAY = "ray"


TargetNames = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        help="cpu, cpu:threads=2, cuda (the GPU here), or a named one: cuda:sm_90a. Several with "
        "--executor ray.",
        show_default="TILEWRIGHT_TARGET, [tool.tilewright], or cpu",
        autocompletion=completing.targets,
    ),
]
ExecutorOption = Annotated[
    ExecutorName,
    typer.Option("--executor", help="local: this machine; ray: the workers of a Ray cluster."),
]
ClusterAddress = Annotated[
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
class Executors:
    """Executors of some targets: a ``cluster`` measures on them, or this machine if None.

    ``address`` is that of a cluster which is not this machine's own.
    """

    targets: tuple[Target, ...]
    cluster: RayExecutor | None = None
    address: str | None = None

    @property
    def is_here(self) -> bool:
        """True if kernels run on this machine's own hardware."""
        return self.address is None

    @property
    def configuration(self) -> dict[str, object]:
        """The options that a session records, to be resumed by
        :func:`scheduler.cli.resuming.resumed_executors`."""
        if self.cluster is None:
            return {"executor": str(ExecutorName.LOCAL)}
        return {"executor": str(ExecutorName.RAY), "address": self.address}

    def status(self) -> DriverStatus | None:
        """Return the state of the cluster's workers; None on this machine."""
        return None if self.cluster is None else self.cluster.status()

    def lacking(self, target: Target) -> str:
        """Return the workers of a cluster that ``target`` has lost; empty if it has enough."""
        return "" if self.cluster is None else self.cluster.lacking(target)

    @contextmanager
    def executor_for(self, target: Target) -> Iterator[Executor]:
        """Open the executor that measures on ``target``."""
        if self.cluster is not None:
            yield self.cluster
            return
        from tilewright.scheduler.defaults import local_executor

        with closing(local_executor(target)) as executor:
            yield executor


@contextmanager
def open_executors(
    names: Sequence[str],
    threads: int | None,
    executor: ExecutorName = ExecutorName.LOCAL,
    address: str | None = None,
    insecure: bool = False,
) -> Iterator[Executors]:
    """Open the executors of the targets called ``names``; :class:`InputError` if there are none."""
    if executor is ExecutorName.LOCAL:
        refuse_cluster_options(address, insecure)
        yield _this_machine(names, threads)
        return
    kinds = tuple(dict.fromkeys(_kind(name) for name in names))
    if threads is not None and "cpu" not in kinds:
        raise InputError(f"threads={threads} is for the target cpu, not {', '.join(names)}")
    with cluster_executors(kinds, _threads(names, threads), address, insecure) as cluster:
        yield replace(cluster, targets=targets_named(names, cluster.targets))


@contextmanager
def cluster_executors(
    kinds: Sequence[str], threads: int, address: str | None, insecure: bool
) -> Iterator[Executors]:
    """Open a cluster, for all targets of these kinds that its workers have;
    :class:`InputError` if there is no such cluster, or none of them."""
    from tilewright.measure.cluster.driver.plan import Needs
    from tilewright.measure.cluster.executor import RayExecutor

    needs = Needs(tuple(kinds), threads)
    with closing(RayExecutor(address, needs, insecure)) as cluster:
        if address is not None:
            remember(cluster.address)
        named = None if address is None else cluster.address
        yield Executors(tuple(cluster.targets()), cluster, named)


def check_offered(wanted: Sequence[Target], offered: Sequence[Target]) -> None:
    """Raise :class:`InputError` for a target that is not offered."""
    for target in wanted:
        if target not in offered:
            raise _not_offered(target.summary, offered)


def refuse_cluster_options(address: str | None, insecure: bool) -> None:
    """Raise :class:`InputError` for options of clusters."""
    if address is not None or insecure:
        option = "--address" if address is not None else "--insecure-cluster"
        raise InputError(f"{option} is for a cluster; allowed with: --executor ray")


def short_names(targets: Sequence[Target]) -> list[str]:
    """Short, distinct names of targets, for output lines. A single target needs no name."""
    if len(set(targets)) < 2:
        return [""] * len(targets)
    short = [target.summary.partition(",")[0] for target in targets]
    alike = len(set(short)) < len(set(targets))
    return [target.summary for target in targets] if alike else short


def targets_named(names: Sequence[str], offered: Sequence[Target]) -> tuple[Target, ...]:
    """Return those of the ``offered`` targets that go by ``names``; :class:`InputError` for a name
    that none goes by."""
    found: dict[str, Target] = {}
    for name in names:
        matching = [target for target in offered if _goes_by(name, target)]
        if not matching:
            raise _not_offered(name, offered)
        found |= {target.fingerprint: target for target in matching}
    return tuple(found.values())


def _goes_by(name: str, target: Target) -> bool:
    kind, _, variant = name.partition(":")
    if kind != target.kind or not variant:
        return kind == target.kind
    if isinstance(target, CpuTarget):
        return named_threads(variant) == target.threads
    return variant == getattr(target, "name", "")


def _not_offered(name: str, offered: Sequence[Target]) -> InputError:
    there_are = "; ".join(target.summary for target in offered)
    return InputError(f"no worker has the target {name}; they have: {there_are}")


def _this_machine(names: Sequence[str], threads: int | None) -> Executors:
    if len(names) > 1:
        raise InputError(
            f"{len(names)} targets ({', '.join(names)}), but this machine measures on one at a "
            "time; allowed: one --target, or --executor ray"
        )
    return Executors((detect_target(names[0], threads),))


def _kind(name: str) -> str:
    """Return the kind of the target called ``name``; :class:`InputError` for a name that nobody
    has."""
    kind, _, variant = name.partition(":")
    if kind == "cpu":
        named_threads(variant)
        return kind
    return name if name == "cuda" else detect_target(name).kind


def _threads(names: Sequence[str], threads: int | None) -> int:
    """Return the threads of CPU kernels, from the names of targets or from the option;
    :class:`InputError` where these differ."""
    parts = [name.partition(":") for name in names]
    named = [named_threads(variant) for kind, _, variant in parts if kind == "cpu"]
    numbers = {number for number in (*named, threads) if number is not None}
    if len(numbers) > 1:
        raise InputError(
            f"kernels of {', '.join(map(str, sorted(numbers)))} threads; allowed: one number"
        )
    return numbers.pop() if numbers else default_threads()
