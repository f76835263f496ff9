"""Where a session goes on: where it ran, or where the command line says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from tilewright.measure.records.run import Run
from tilewright.scheduler.cli.known_clusters import is_known
from tilewright.scheduler.cli.place import (
    ExecutorName,
    Place,
    check_local,
    check_offered,
    on_cluster,
)
from tilewright.scheduler.tuning.runs.sessions import Rest, target_here
from tilewright.spaces.errors import InputError, shown


@contextmanager
def place_again(
    session: str,
    undone: Sequence[Rest],
    executor: ExecutorName | None = None,
    address: str | None = None,
    insecure: bool = False,
) -> Iterator[Place]:
    """Where to measure what is ``undone`` of a session; :class:`InputError` if that cannot be, or
    has not the hardware that the session ran on."""
    ran, at = _recorded(undone[0].run)
    if (executor or ran) is ExecutorName.LOCAL:
        check_local(address, insecure)
        yield Place(tuple(target_here(rest.run) for rest in undone))
        return
    goes_back = executor is None and address is None
    with ExitStack() as stack:
        try:
            where = stack.enter_context(
                _cluster(undone, _trusted(at) if goes_back else address, insecure)
            )
        except InputError as error:
            if not goes_back or at is None:
                raise
            raise InputError(
                f"{error}; session {session} ran there; allowed instead: --address HOST:PORT of a "
                "cluster that you know, or --executor local"
            ) from None
        yield where


@contextmanager
def _cluster(undone: Sequence[Rest], address: str | None, insecure: bool) -> Iterator[Place]:
    """The cluster at ``address`` with the targets that runs had."""
    targets = [rest.run.target for rest in undone]
    kinds = list(dict.fromkeys(target.kind for target in targets))
    threads = max(getattr(target, "threads", 1) for target in targets)
    with on_cluster(kinds, threads, address, insecure) as where:
        check_offered(targets, where.targets)
        yield where


def _trusted(address: str | None) -> str | None:
    """``address``, which a database names, if the user has been there."""
    if address is not None and not is_known(address):
        raise InputError(f"you have never named the cluster at {shown(address)} yourself")
    return address


def _recorded(run: Run) -> tuple[ExecutorName, str | None]:
    """The executor of a run, and the address of its cluster, if that was not its own."""
    told = run.configuration
    executor, address = told.get("executor", ExecutorName.LOCAL), told.get("address")
    if executor not in list(ExecutorName) or not isinstance(address, str | None):
        raise InputError(
            f"run {run.key} cannot be resumed: executor={shown(executor)} at {shown(address)} is "
            f"none; allowed: {', '.join(ExecutorName)}"
        )
    return ExecutorName(executor), address
