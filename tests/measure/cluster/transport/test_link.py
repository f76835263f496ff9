"""The pipe to a relay that ends in the middle of a word."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing

from tilewright.measure.cluster.transport.link import Link

KILLED = """print('{"event": "pulse"}\\n{"event": "nodes", "no', end="")"""


def test_a_line_that_a_killed_courier_did_not_finish_is_no_event(monkeypatch):
    start = subprocess.Popen
    monkeypatch.setattr(
        "tilewright.measure.cluster.transport.link.subprocess.Popen",
        lambda _, **options: start([sys.executable, "-c", KILLED], **options),
    )
    with closing(Link()) as link:
        assert list(link.events()) == [{"event": "pulse"}]
