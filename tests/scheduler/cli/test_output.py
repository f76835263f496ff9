"""Tables on standard output."""

from __future__ import annotations

import pytest

from tilewright.scheduler.cli.output import facts, print_table, show


def test_what_nobody_looks_at_is_printed_as_aligned_lines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table(("what", "#how many"), [("a\x1b[2J", "1"), ("bbb", "20000000000")])
    assert capsys.readouterr().out.splitlines() == [
        "what         how many",
        "a\\x1b[2J            1",
        "bbb       20000000000",
    ]


@pytest.mark.parametrize("colour", ["", "1"])
def test_what_nobody_looks_at_is_neither_folded_nor_coloured_nor_filled_with_blanks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, colour: str
) -> None:
    """Also where ``FORCE_COLOR`` is set for other programs, as on CI machines."""
    monkeypatch.setenv("FORCE_COLOR", colour)
    show(facts([("workload", "x" * 500), ("best", "1 us")]))
    assert capsys.readouterr().out == f"workload  {'x' * 500}\nbest      1 us\n"
