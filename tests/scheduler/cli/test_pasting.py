"""Lines to paste: each names what was tuned, and is a call that Python can read."""

from __future__ import annotations

import ast

import pytest

from tilewright.scheduler.cli.pasting import best_call, lines_to_paste
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.operators import workload
from tilewright.spaces.target import detect_target

TEXTS = [
    "matmul m=64 n=64 k=64",
    'matmul m=64 n=64 k=64 b=col epilogue="relu(x + bias[n])"',
    "matmul m=64 n=64 k=64 dtype=bfloat16",
    '"y[r, c] = softmax[c](x[r, c] / t)" r=16 c=8',
    "softmax r=16 c=8",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_call_names_its_workload_in_few_words(text: str) -> None:
    asked = workload(text)
    call = best_call(asked, detect_target("cpu"), "tuning.db", Numerics.STRICT)
    (name, target, db) = ast.literal_eval(call.removeprefix("best"))
    assert workload(name).key == asked.key
    assert len(name) <= len(text)
    assert (target, db) == ("cpu", "tuning.db")


def test_a_call_names_threads_and_numerics_and_no_password() -> None:
    target, db = detect_target("cpu:threads=2"), "postgresql://me:secret@host/db"
    call = best_call(workload(TEXTS[0]), target, db, Numerics.FAST)
    assert call == (
        'best("matmul m=64 n=64 k=64", "cpu:threads=2", "postgresql://me:***@host/db", '
        'numerics="fast")'
    )


def test_a_run_that_no_command_repeats_has_no_such_line() -> None:
    found = [(workload(TEXTS[0]), detect_target("cpu"), Numerics.STRICT)]
    assert len(list(lines_to_paste(found, "x.db", ""))) == 2
    assert list(lines_to_paste(found, "x.db", "tilewright tune"))[-1] == "  tilewright tune"
