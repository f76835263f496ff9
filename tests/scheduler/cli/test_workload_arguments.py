"""What a command line asks for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilewright.scheduler.cli.app import run
from tilewright.scheduler.cli.workload_arguments import workload_from_arguments
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.workloads.gradients import gradient

TEXT = "# of matrices\ny[i, j] = sum[k](a[i, k] * b[k, j])\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "product.tw"
    path.write_text(TEXT)
    return path


def test_a_file_is_the_operator_that_it_spells(file: Path, tmp_path: Path, capsys) -> None:
    asked = ["--file", str(file), "i=8", "j=9", "k=5", "--format", "json"]
    named = ["matmul", "m=8", "n=9", "k=5", "--format", "json"]
    database = ["--db", str(tmp_path / "none.db")]
    found = []
    for words in (asked, named):
        assert run(["query", *words, *database]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1]


def test_a_name_a_text_and_a_file_are_taken(file: Path) -> None:
    product = workload("matmul m=8 n=9 k=5")
    assert workload_from_arguments("matmul", ["m=8", "n=9", "k=5"]) == product
    assert workload_from_arguments(TEXT.splitlines()[1], ["i=8", "j=9", "k=5"]) == product
    assert workload_from_arguments("i=8", ["j=9", "k=5"], file) == product


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["query"], "Missing argument 'OPERATOR', or --file"),
        (["verify"], "Missing argument 'OPERATOR', or --file"),
        (["tune"], "Missing argument 'OPERATOR', or --file, or --suite"),
        (["tune", "--suite", "bert-base", "--file", "x.tw"], "--suite and --file; allowed: one"),
        (
            ["tune", "--file", "missing.tw", "m=3"],
            "cannot read the program missing.tw: No such file",
        ),
        (["query", "--file", "."], "cannot read the program .: Is a directory"),
        (["explain", "--plot", "x.svg", "--file", "x.tw"], "--plot is for a model, not for 'x.tw'"),
        (["query", "--file", "/dev/zero"], "/dev/zero is no program: over 65536 bytes"),
        (["query", "--file", "/bin/true"], "/bin/true is no program: "),
    ],
)
def test_bad_requests_are_one_line(words: list[str], says: str, capsys) -> None:
    assert run(words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert says in said.err
    assert said.err.count("\n") == 1


def test_nothing_is_no_workload() -> None:
    with pytest.raises(InputError, match="Missing argument"):
        workload_from_arguments(None, None)


def test_gradients_are_workloads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["softmax", "r=4", "c=8", "--gradient", "x", "--saved", "y"]
    assert run(["show", *words]) == 0
    shown = capsys.readouterr().out
    made = gradient("softmax r=4 c=8", "x", saved="y")
    assert str(made) in shown
    assert made.digest in shown
    database = ["--db", str(tmp_path / "none.db"), "--format", "json"]
    assert run(["query", *words, *database]) == 0
    asked = json.loads(capsys.readouterr().out)
    assert run(["query", str(made), *database]) == 0
    assert json.loads(capsys.readouterr().out)["schedule"] == asked["schedule"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["softmax", "r=4", "c=8", "--gradient", "z"], "the program has no operand 'z'"),
        (["softmax", "r=4", "c=8", "--gradient", ""], "no operand is named to differentiate by"),
        (["softmax", "r=4", "c=8", "--saved", "y"], "--saved y is for a gradient"),
        (["softmax", "r=4", "c=8", "--gradient", "x", "--saved", "z"], "saved 'z' is no stage"),
        (["argmax", "shape=4x5", "over=1", "--gradient", "x"], "no output is of floating point"),
        (
            ["embedding", "t=4", "d=3", "words=5", "--gradient", "token"],
            "token holds whole numbers",
        ),
        (["y[i] = floor(x[i])", "i=4", "--gradient", "x"], "floor has no gradient"),
    ],
)
def test_gradients_that_are_not_there(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("show", "tune"):
        assert run([command, *words]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert len(error.strip().splitlines()) == 1
        assert len(error.strip()) <= 200
