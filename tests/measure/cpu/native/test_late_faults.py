"""Kernels that go wrong after they were checked, and what the server makes of foreign words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.measure.cpu.c_kernels import PRELUDE, candidate, good, measured, product, target
from tilewright.measure.cpu.builder import CBuilder
from tilewright.measure.cpu.runner import CRunner
from tilewright.measure.records.measurement import ErrorKind


@pytest.mark.parametrize("column", [0, 100])
def test_a_column_that_is_no_longer_written_is_seen(column: int) -> None:
    """Whichever it is: what is looked at lies in all of them."""
    stop = f"if (n != {column} || calls < 3) C[m"
    body = lambda p: f"static int calls; calls++; {p.replace('C[m', stop)}"  # noqa: E731
    [found] = measured([candidate("stops", body, product(300, 252, 8))])
    assert found.error_kind is ErrorKind.WRONG, found
    assert "last call" in found.error_text


def test_an_output_of_one_element_that_is_no_longer_written_is_seen() -> None:
    body = lambda p: f"static int calls; if (calls++ > 1) return; {p}"  # noqa: E731
    [found] = measured([candidate("stops", body, product(1, 1, 8))])
    assert found.error_kind is ErrorKind.WRONG, found
    assert "last call" in found.error_text


def test_what_a_process_says_is_printable(tmp_path: Path) -> None:
    builder, runner = CBuilder(target()), CRunner(target())
    [built] = builder.build([good()])
    [found] = runner.run(built.candidate.job, [replace(built, binary=tmp_path / "\x1b[31mno.so")])
    runner.close()
    builder.close()
    assert found.lost
    assert "?[31mno.so" in found.error_text


def test_what_a_failed_candidate_started_is_gone_before_the_next_one_runs() -> None:
    start = """
  if (!fork()) {
    for (int file = 3; file < 64; file++) close(file);
    setsid();
    execlp("sleep", "sleep", "4006", NULL);
  }
  usleep(100000);
  abort();
"""
    look = "if (!system(\"grep -qsz '^400[6]$' /proc/[0-9]*/cmdline\")) abort();"
    include = "#include <unistd.h>\n" + PRELUDE
    starts = candidate("starts", start, prelude=include)
    looks = candidate("looks", lambda p: f"static int n; if (!n++) {look} {p}")
    found = measured([starts, looks])
    assert [m.ok for m in found] == [False, True], found[1].error_text
