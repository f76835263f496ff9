"""What calls keep and leave: workspaces, references, circles."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import weakref

import numpy as np
import pytest
import torch

from tests.scheduler.functions.counted_calls import FLOATS, UNFIT, array, transposition
from tests.scheduler.functions.headers import needs_header
from tilewright.scheduler.functions.arrays import Port
from tilewright.scheduler.functions.caller import caller

pytestmark = needs_header


def test_workspaces_are_aligned_and_kept():
    kernel = transposition(scratch=100)
    for _ in range(3):
        kernel.call(FLOATS)
    (made,) = kernel.made
    (workspace,) = {workspace for _, workspace, _ in kernel.calls}
    assert workspace % 64 == 0
    assert 0 <= workspace - made.ctypes.data < 64


def test_calls_at_once_have_workspaces_of_their_own():
    """Which needs them to run at once: a kernel runs without the interpreter's lock."""
    kernel, together = transposition(scratch=64), threading.Barrier(3, timeout=60)
    kernel.entered = together.wait
    threads = [threading.Thread(target=kernel.call, args=(FLOATS,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({workspace for _, workspace, _ in kernel.calls}) == 3
    assert len(kernel.made) == 3


def test_what_fails_to_make_a_workspace_is_an_error():
    kernel = transposition(scratch=64)

    def fails(size):
        raise MemoryError(size)

    kernel._new = fails
    with pytest.raises(MemoryError, match="64"):
        kernel.call(FLOATS)
    assert kernel.calls == kernel.seen == []


def test_nothing_is_leaked():
    kernel = transposition(scratch=64)
    y, tensor, to = np.zeros((4, 6), np.float32), torch.zeros(6, 4), torch.zeros(4, 6)
    held = (y, tensor, to, kernel, FLOATS, UNFIT["negated"], UNFIT["no storage"], False, None)
    kernel._closely = lambda *_, **__: None
    kernel.call = caller(
        ctypes.cast(kernel._entry, ctypes.c_void_p).value,
        77,
        [Port(array("x", 6, 4))],
        [Port(array("y", 4, 6), output=True)],
        lambda: kernel._new(64),
        [],
        kernel._closely,
    )

    def every_way_out():
        for x in (FLOATS, tensor, UNFIT["negated"], UNFIT["no storage"], UNFIT["dtype"], None):
            kernel.call(x)
            kernel.call(x, out=y)
            kernel.call(x, out=to)
        kernel.call()
        kernel.calls.clear()

    def owed():
        gc.collect()
        return [sys.getrefcount(one) for one in held[:-2]], sys.getallocatedblocks()

    every_way_out()
    references, blocks = owed()
    for _ in range(2000):
        every_way_out()
    later, blocks_later = owed()
    assert later == references
    assert blocks_later < blocks + 500


def test_a_circle_of_a_caller_and_who_looks_closely_is_collected():
    class Owner:
        def __init__(self):
            port = Port(array("x", 6, 4))
            self.call = caller(0, 0, [port], [port], None, [], self.closely)

        def closely(self):
            return None

    gone = weakref.ref(Owner())
    gc.collect()
    assert gone() is None
