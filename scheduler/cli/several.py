"""Tuning for several targets at once, a thread each."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from spaces.target import Target

LOOK_SECONDS = 0.2  # between two looks whether a thread has ended, or a signal came


def on_each(targets: Sequence[Target], tune: Callable[[Target], int]) -> int:
    """Tune for all of ``targets`` at the same time; the largest of the exit codes.

    A signal, or an exception of one of them, ends the wait for the others: whoever closes the
    executor ends these.
    """
    if len(targets) == 1:
        return tune(targets[0])
    codes: list[int] = []
    errors: list[BaseException] = []

    def run(target: Target) -> None:
        try:
            codes.append(tune(target))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(target,), daemon=True) for target in targets]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads) and not errors:
        threads[0].join(LOOK_SECONDS)
        threads.append(threads.pop(0))
    if errors:
        raise errors[0]
    return max(codes)
