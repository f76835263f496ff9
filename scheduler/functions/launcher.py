"""Prepare kernel launches once, keep them, and start them again quickly.

Small kernels take a GPU a few microseconds, so what starts them must take less. On the host of an
H200, with CPython 3.12, the driver's launch takes 3.1 us and torch's comparison of three tensors
0.43; with the driver called through ``cuda.bindings`` and the steps of :func:`start` in Python a
call took 5.6 us. So ``launcher.c`` has them as well, for where a host can compile it.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tilewright.scheduler.functions.cuda_arrays import TensorGuards
from tilewright.scheduler.functions.extension import extension

MOST_CALLS = 1024  # prepared calls kept, at most
SOURCE = Path(__file__).with_suffix(".c")

Start = Callable[
    [tuple[TensorGuards, ...], dict[int, Any], tuple[Any, ...], int | None], int | None
]


class PreparedCall:
    """One call of a kernel, and what it takes, kept alive; ``key`` is its stream and its addresses.

    ``ticket`` is all that ``launcher.c`` needs to start it.
    """

    __slots__ = ("_entry", "_held", "_launches", "_watch", "key", "ticket")

    def __init__(
        self,
        entry: Any,
        launches: Sequence[tuple[int, int, int]],
        watch: Any,
        key: list[int],
        held: object,
    ) -> None:
        """Prepare ``entry(*launch, None)`` of each launch, the driver's ``cuLaunchKernelEx``.
        ``watch`` is its ``cuStreamIsCapturing`` if the call is not for a stream that is captured,
        else None.
        """
        addresses = (
            ctypes.cast(function, ctypes.c_void_p).value or 0 for function in (entry, watch)
        )
        pointers = [pointer for launch in launches for pointer in launch]
        self.ticket = struct.pack(f"{3 + len(pointers)}P", *addresses, key[0], *pointers)
        self.key = key
        self._entry, self._launches = entry, launches
        self._watch = watch
        self._held = held

    def start(self) -> int:
        """Start its launches, one after the other; the driver's first status that is not 0."""
        for launch in self._launches:
            if status := self._entry(*launch, None):
                return int(status)
        return 0

    def unfit(self) -> bool:
        """Return True if the launch must not start: its stream is being captured, or cannot be
        asked."""
        if self._watch is None:
            return False
        captured = ctypes.c_int()
        return self._watch(self.key[0], ctypes.byref(captured)) != 0 or captured.value != 0


class PreparedCalls:
    """Calls by their keys.

    ``tree`` has a level of dictionaries for each number of a key: to walk it down, number by
    number, takes less time than to put them all together for one dictionary.
    """

    def __init__(self) -> None:
        self.tree: dict[int, Any] = {}
        self.count = 0

    def find(self, key: list[int]) -> PreparedCall | None:
        """Return the call of this key, if it is kept."""
        found: Any = self.tree
        try:
            for number in key:
                found = found[number]
        except KeyError:
            return None
        return found

    def keep(self, call: PreparedCall) -> None:
        """Keep a call; where there are too many, all others go."""
        if self.count >= MOST_CALLS:
            self.tree, self.count = {}, 0
        *path, last = call.key
        branch = self.tree
        for number in path:
            branch = branch.setdefault(number, {})
        branch[last] = call
        self.count += 1


def start(
    known: tuple[TensorGuards, ...],
    prepared: dict[int, Any],
    arrays: tuple[Any, ...],
    stream: int | None,
) -> int | None:
    """Start a prepared call again, on ``stream`` or else on torch's current one.

    Returns the driver's status, or None if ``arrays`` match none of ``known`` or no call in
    ``prepared``, a :attr:`PreparedCalls.tree`, is prepared for their addresses.
    """
    for likeness in known:
        if likeness.alike(*arrays):
            break
    else:
        return None
    if stream is None:
        stream = likeness.current_stream()
    try:
        found = prepared[stream]
        for array in arrays:
            found = found[array.data_ptr()]
    except KeyError:
        return None
    return None if found.unfit() else found.start()


@cache
def compiled_start() -> Start | None:
    """Return the same function of ``launcher.c``; None where that cannot be built."""
    found = extension(SOURCE)
    return found.start if found else None
