"""The command line inside a child, held to what it promises of all input.

What commands load when they need it is loaded here, once for all children.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout

import numpy as np

from tilewright.costmodel.library import load_xgboost
from tilewright.scheduler.best import best
from tilewright.scheduler.cli.app import run
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.workloads.workload import Workload

for _module in (
    "alembic.command",
    "tilewright.measure.database",
    "tilewright.scheduler.training",
    "tilewright.scheduler.tuning.tuner",
):
    importlib.import_module(_module)
load_xgboost()

SHAPE = {"m": 24, "n": 20, "k": 16}
WORDS = ("matmul", *(f"{name}={extent}" for name, extent in SHAPE.items()))
PROGRAM = ("s[r, c] = x[r, c] * 2 + b[c]; y[r, c] = softmax[c](s[r, c])", "r=24", "c=20")
SEGMENTS = ("grouped_matmul", "t=9", "n=8", "k=7", "experts=3")


def command(*arguments: str) -> int:
    """The exit code of a command, whose words are checked."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(arguments)
    check_streams(arguments, code, out.getvalue(), err.getvalue())
    return code


def check_streams(arguments: Sequence[str], code: int, printed: str, remarks: str) -> None:
    """A command keeps to one line for what is wrong, without a control character and without a
    traceback."""
    about = f"{arguments!r:.500} gave {code}, printed {printed!r:.300}, remarked {remarks!r:.600}"
    assert code in (0, 1, 2), about
    assert all(c.isprintable() or c in "\n\t" for c in printed + remarks), about
    if code or "--source" not in arguments:  # beside a source the answer is a remark
        assert all(line.startswith("tilewright: ") for line in remarks.splitlines()), about
    assert all(len(line) < 2000 for line in remarks.splitlines()), about
    if code == 2:
        assert remarks.count("\n") >= 1, about


def rightly(database: str, shape: Workload | None = None) -> None:
    """``best`` gives a function that is right, or says in words why not."""
    asked = shape or workload("matmul", **SHAPE)
    try:
        function = best(asked, "cpu", database)
    except InputError as error:
        check_words(error)
        return
    inputs = asked.make_inputs(seed=1)
    found = function(*inputs.values())
    np.testing.assert_allclose(found, asked.matmul.reference(inputs), rtol=1e-4, atol=1e-4)


def check_words(error: InputError) -> None:
    """An error of an interface for programs is a sentence, too."""
    assert 0 < len(str(error)) < 2000
    assert all(c.isprintable() or c == "\n" for c in str(error)), repr(error)
