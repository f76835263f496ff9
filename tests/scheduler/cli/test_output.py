"""Tables on standard output."""

from __future__ import annotations

import pytest

from scheduler.cli.output import print_table


def test_what_nobody_looks_at_is_printed_as_aligned_lines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table(("what", "#how many"), [("a\x1b[2J", "1"), ("bbb", "20000000000")])
    assert capsys.readouterr().out.splitlines() == [
        "what         how many",
        "a\\x1b[2J            1",
        "bbb       20000000000",
    ]
