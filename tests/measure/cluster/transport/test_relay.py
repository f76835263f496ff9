"""What a relay hears of its driver."""

from __future__ import annotations

import io
import queue

from tilewright.measure.cluster.transport import relay


def test_a_driver_that_is_killed_while_it_speaks_ends_its_courier(monkeypatch):
    inbox: queue.Queue = queue.Queue()
    said = '{"do": "scout", "node": "a"}\n{"do": "build", "te'
    monkeypatch.setattr("sys.stdin", io.StringIO(said))
    relay._read_commands(inbox)
    assert inbox.get_nowait() == {"do": "scout", "node": "a"}
    assert inbox.get_nowait() is None
