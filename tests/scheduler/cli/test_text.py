"""What is kept of a command line."""

from __future__ import annotations

import sys

import pytest

from tilewright.scheduler.cli.text import command_line, some


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        (["tune", "matmul", "m=8"], "tilewright tune matmul m=8"),
        (["--db", "a b.db"], "tilewright --db 'a b.db'"),
        (
            ["--db", "postgresql://me:se:cret@host/db"],
            "tilewright --db postgresql://me:***@host/db",
        ),
        (
            ["--db", "postgresql://me:a/b:c'd@host:5432/db?sslmode=require&password=secret&x=1"],
            "tilewright --db 'postgresql://me:***@host:5432/db?sslmode=require&password=***&x=1'",
        ),
        (["--address", "ray://host:10001"], "tilewright --address ray://host:10001"),
        (["--db", "postgresql://me@host/db"], "tilewright --db postgresql://me@host/db"),
    ],
)
def test_passwords_are_not_kept(
    monkeypatch: pytest.MonkeyPatch, typed: list[str], kept: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["x", *typed])
    assert command_line() == kept


def test_a_line_lists_a_few_names_of_many():
    names = [f"w{number}" for number in range(3000)]
    assert some(names[:5]) == "w0, w1, w2, w3, w4"
    assert some(names) == "w0, w1, w2, w3, w4 and 2995 others"
