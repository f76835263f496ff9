"""Open the executors that a resumed session continues on: its own, or other ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from tilewright.measure.records.run import Run
from tilewright.scheduler.cli.executors import (
    ExecutorName,
    Executors,
    check_offered,
    cluster_executors,
    refuse_cluster_options,
)
from tilewright.scheduler.cli.known_clusters import is_known
from tilewright.scheduler.tuning.runs.sessions import UnfinishedRun, target_here
from tilewright.spaces.errors import InputError, shown


@contextmanager
def resumed_executors(
    session: str,
    undone: Sequence[UnfinishedRun],
    executor: ExecutorName | None = None,
    address: str | None = None,
    insecure: bool = False,
) -> Iterator[Executors]:
    """Open executors for the ``undone`` runs of a session; :class:`InputError` if there are none
    with the hardware that the session ran on."""
    ran, at = _recorded(undone[0].run)
    if (executor or ran) is ExecutorName.LOCAL:
        refuse_cluster_options(address, insecure)
        yield Executors(tuple(target_here(unfinished.run) for unfinished in undone))
        return
    goes_back = executor is None and address is None
    with ExitStack() as stack:
        try:
            executors = stack.enter_context(
                _cluster(undone, _trusted(at) if goes_back else address, insecure)
            )
        except InputError as error:
            if not goes_back or at is None:
                raise
            raise InputError(
                f"{error}; session {session} ran there; allowed instead: --address HOST:PORT of a "
                "cluster that you know, or --executor local"
            ) from None
        yield executors


@contextmanager
def _cluster(
    undone: Sequence[UnfinishedRun], address: str | None, insecure: bool
) -> Iterator[Executors]:
    """Open the cluster at ``address``, which must have the targets of the runs."""
    targets = [unfinished.run.target for unfinished in undone]
    kinds = list(dict.fromkeys(target.kind for target in targets))
    threads = max(getattr(target, "threads", 1) for target in targets)
    with cluster_executors(kinds, threads, address, insecure) as executors:
        check_offered(targets, executors.targets)
        yield executors


def _trusted(address: str | None) -> str | None:
    """Return ``address``, which a database names, if the user has been there."""
    if address is not None and not is_known(address):
        raise InputError(f"you have never named the cluster at {shown(address)} yourself")
    return address


def _recorded(run: Run) -> tuple[ExecutorName, str | None]:
    """Return the executor of a run, and the address of its cluster, if that was not its own."""
    options = run.configuration
    executor, address = options.get("executor", ExecutorName.LOCAL), options.get("address")
    if executor not in list(ExecutorName) or not isinstance(address, str | None):
        raise InputError(
            f"run {run.key} cannot be resumed: executor={shown(executor)} at {shown(address)} is "
            f"none; allowed: {', '.join(ExecutorName)}"
        )
    return ExecutorName(executor), address
