"""Tables on standard output."""

from __future__ import annotations

import pytest

from scheduler.cli.output import facts, print_table, show


def test_what_nobody_looks_at_is_printed_as_aligned_lines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table(("what", "#how many"), [("a\x1b[2J", "1"), ("bbb", "20000000000")])
    assert capsys.readouterr().out.splitlines() == [
        "what         how many",
        "a\\x1b[2J            1",
        "bbb       20000000000",
    ]


def test_what_nobody_looks_at_is_neither_folded_nor_filled_with_blanks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show(facts([("workload", "x" * 500), ("best", "1 us")]))
    assert capsys.readouterr().out == f"workload  {'x' * 500}\nbest      1 us\n"
