"""What happens before a timed call, by kernels that look at it: the server's own code counts what
it does in a variable of the environment, which a kernel can read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.measure.cpu.c_kernels import PRELUDE, candidate, measured, target
from tilewright.measure.cpu import binaries
from tilewright.measure.cpu import runner as cpu_runner
from tilewright.measure.cpu.runner import CRunner
from tilewright.measure.records.measurement import Measurement
from tilewright.measure.timing import SEARCH

LINES = 1000
COUNTED = """
#include <stdlib.h>
#include <stdio.h>
void flush_caches(volatile char *memory, size_t bytes) {
  static int times;
  static char before[BYTES];
  char text[16];
  for (size_t i = 0; i < bytes; i++) before[i] = memory[i];
  flush_really(memory, bytes);
  for (size_t i = 0; i < bytes; i += 64) if (memory[i] == before[i]) return;
  snprintf(text, sizeof text, "%d", bytes ? ++times : 0);
  setenv("TIMES", text, 1);
}
""".replace("BYTES", str(64 * LINES))
"""It counts where every line was written to."""
LOOKS = 'static int call; call++; const char *text = getenv("TIMES"); int times = atoi(text);'


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that counts how often something else was written before a timed call."""
    server = binaries._server()
    code = server.sources["cache_flush.c"].replace(
        "void flush_caches(", "static void flush_really("
    )
    build = replace(server, sources={**server.sources, "cache_flush.c": code + COUNTED})
    path = build.file.program(build.compile)
    monkeypatch.setattr(cpu_runner, "server_binary", lambda: path)


def looking(wrong: str, flush_bytes: int, final: bool = False) -> Measurement:
    """Of a kernel whose result is wrong where ``wrong`` holds of ``call``, its number from 1, and
    of ``times``."""
    head = f"{LOOKS} %s if ({wrong}) C[7] += 1;"
    kernel = candidate("looking", lambda p: head.replace("%s", p), prelude=PRELUDE)
    [found] = measured([kernel], CRunner(target(), flush_bytes=flush_bytes), final=final)
    return found


@pytest.mark.parametrize("final", [False, True])
def test_others_write_every_line_once_before_each_call(counting: None, final: bool) -> None:
    found = looking("times != call", flush_bytes=64 * LINES, final=final)
    assert found.ok, found.error_text
    assert len(found.samples) >= SEARCH.samples
    assert found.info["bytes_elsewhere"] == 64 * LINES


def test_calls_follow_each_other_else(counting: None) -> None:
    found = looking("times != 0", flush_bytes=0)
    assert found.ok, found.error_text
    assert "bytes_elsewhere" not in found.info


def test_a_kernel_that_looks_can_tell(counting: None) -> None:
    assert looking("times != 0", flush_bytes=64 * LINES).error_kind == "wrong_result"


def test_the_score_is_no_lucky_sample(counting: None) -> None:
    between, others = looking("0", flush_bytes=64 * LINES), looking("0", flush_bytes=0)
    assert between.score == pytest.approx(np.quantile(between.samples, 0.25))
    assert others.score == min(others.samples)
