"""Programs without a meaning on a command line: one line on standard error, and exit code 2."""

from __future__ import annotations

from itertools import product

import pytest

from tests.scheduler.cli.command import one_line
from tilewright.scheduler.cli.app import run

BAD = {
    "an unknown function": ("y[i] = foo(x[i])", "unknown function 'foo'; known: exp, "),
    "an unknown axis": ("y[i] = sum[z](x[i])", "'z' is no axis; allowed: i"),
    "an unknown operand": ("y[i] = x[t[i]]", "index 't' is unknown; allowed: axes"),
    "an unknown reducer": ("y[i] = median[j](x[i, j])", "unknown reducer 'median'; known: sum"),
    "an index out of range": ("x: float32[4]; y[i] = x[i + 1]", "runs from 1 to 4 (i from 0 to 3)"),
    "an axis not reduced": ("y[i] = x[i, j]", "'j' of y[i] is neither kept nor reduced"),
    "a stage too early": ("y[i] = z[i]; z[i] = x[i]", "'z' is read before it exists"),
    "a stage twice": ("y[i] = x[i]; y[i] = 2", "'y' is defined twice"),
    "a circle": ("a[i] = b[i]; b[i] = a[i]", "'b' is read before it exists"),
    "a condition that never holds": (
        "where j < 0; y[i] = sum[j](x[i, j])",
        "leaves no element for any row",
    ),
    "a text too long": (f"y[i] = {'+'.join(['x[i]'] * 4000)}", "characters; allowed: 16000"),
    "a text too deep": (f"y[i] = {'-' * 70}x[i]", "too deeply nested; allowed: 64 levels"),
    "too many stages": ("y[i] = x[i]\n" * 500, "500 statements; allowed: 400"),
    "outputs that overlap": ("y[i] = x[i]; -> y, y", "named twice: outputs overlap"),
}
COMMANDS = ("tune", "query", "show")
ASKED = list(product(COMMANDS, BAD))
LARGE = ("y[i] = x[i]", "i=16777217 is out of range; allowed: whole numbers from 1 to 16777216")


@pytest.mark.parametrize(("command", "name"), ASKED)
def test_what_has_no_meaning_is_one_line(here, capsys, command, name):
    text, says = BAD[name]
    used = ["i=4", *(["j=5"] if "j" in text else [])]
    check(here, capsys, (command, text, *used), says)


@pytest.mark.parametrize("command", COMMANDS)
def test_an_extent_out_of_range_is_one_line(here, capsys, command):
    text, says = LARGE
    check(here, capsys, (command, text, "i=16777217"), says)


def check(here, capsys, words, says):
    assert run(words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert says in one_line(said.err)
    assert len(said.err) < 1000
    assert [path.name for path in here.iterdir()] == ["notes.txt"]
