"""``tilewright dispatch``: tables, files and refusals."""

from __future__ import annotations

import json
import runpy

import numpy as np
import pytest

from tests.scheduler.cli.command import ask, one_line, run
from tilewright.scheduler.dispatch.function import Dispatch
from tilewright.scheduler.dispatch.table import read_table, table_from_json

WORDS = ("dispatch", "matmul", "n=64", "k=64", "--profile", "1:.1,64:.8,70:.1", "--kernels", "2")
STARRED = ("query", "matmul", "m=*", "n=64", "k=64")


def test_a_table_is_printed_and_written(tuned, here, capsys):
    db = ("--db", str(tuned[0]))
    out = ask(capsys, *WORDS, *db, "--out", "table.json", "--python", "table.py")
    assert "expected regret" in out
    assert "64" in out
    table = read_table("table.json")
    assert any(kernel.size == 64 and kernel.schedule for kernel in table.kernels)
    names = runpy.run_path("table.py")
    chosen = [names["choose"](size) for size in range(1, 71)]
    assert chosen == [table.row(size).size for size in range(1, 71)]
    assert table_from_json(json.loads(ask(capsys, *WORDS, *db, "--format", "json"))) == table
    assert Dispatch.load("table.json", "cpu").choose(70).size == chosen[-1]


def test_a_star_names_the_axis(tuned, here, capsys):
    db = ("--db", str(tuned[0]), "--format", "json")
    kept = json.loads(ask(capsys, *WORDS, *db))
    words = ("matmul", "m=*", *WORDS[2:4])
    assert json.loads(ask(capsys, "dispatch", *words, *WORDS[4:], *db)) == kept
    for asked in (words, ("matmul m=* n=64 k=64",)):
        found = json.loads(ask(capsys, "query", *asked, *db))
        assert [found[name] for name in ("rows", "kernels")] == [kept["rows"], kept["kernels"]]
    assert "worst regret" in ask(capsys, "query", *words, *db[:2])


def test_maps_are_served_by_one_open_kernel(here, capsys):
    words = ("y[r, c] = max(x[r, c] * g[c], 0)", "r=*", "c=48")
    asked = ("--profile", "1-200:1", "--kernels", "1", "--tune", "--seconds", "3", "--db", "t.db")
    assert run(["dispatch", *words, *asked]) == 0
    capsys.readouterr()
    table = table_from_json(
        json.loads(ask(capsys, "query", *words, "--db", "t.db", "--format", "json"))
    )
    (kernel,) = table.kernels
    assert kernel.opened  # its size is a matter of the time that copies of rows take here
    call, draw = Dispatch(table), np.random.default_rng(0).standard_normal
    for rows in (1, 7, 64, 199, 200):
        x, g = (draw(shape).astype(np.float32) for shape in ((rows, 48), 48))
        np.testing.assert_allclose(call(x, g), np.maximum(x * g, 0))


def test_it_tunes_what_it_needs(here, capsys):
    words = ("dispatch", "softmax c=20", "--axis", "r", "--profile", "1-9:1", "--kernels", "1")
    assert run([*words, "--tune", "--seconds", "9", "--db", "t.db", "--out", "table.json"]) == 0
    said = capsys.readouterr()
    assert "trials" in said.out
    assert not said.err
    table = read_table("table.json")
    assert [kernel.provenance for kernel in table.kernels] == ["measured"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((*STARRED, "--source"), "--source is of one kernel"),
        ((*STARRED, "--numerics", "fast"), "--numerics is of one kernel"),
        ((*STARRED, "--model", "none.json"), "--model is of one kernel"),
        ((*STARRED, "--gradient", "A"), "--gradient is of one kernel"),
        ((*STARRED, "--saved", "A"), "--saved is of one kernel"),
        ((*STARRED, "--table", "A=none.npy"), "--table is of one kernel"),
        (("query", "matmul", "m=*", "n=*", "k=64"), "m, n are open; allowed: one axis"),
        (("query", "matmul", "m=64", "n=64", "k=*"), "k is not the outermost axis of A"),
        (STARRED, "there is no database at none.db"),
        ((*WORDS, "m=*", "--axis", "n"), "m='*' is not a whole number"),
        (WORDS[:4], "Missing option '--profile'"),
        ((*WORDS, "--kernels", "0"), "kernels=0 is out of range; allowed: whole numbers from 1"),
        ((*WORDS, "--axis", ""), "axis='' is no name"),
        ((*WORDS, "--axis", "q"), "matmul has no parameter 'q'"),
        ((*WORDS, "m=8", "--axis", "n"), "n is not the outermost axis of B"),
        ((*WORDS, "--profile", "1-8:1,8:1"), "overlap"),
        ((*WORDS, "--seconds", "9"), "--seconds 9 is for tuning; allowed with: --tune"),
        ((*WORDS, "--db", "none.db"), "there is no database at none.db"),
        ((*WORDS, "--out", "."), "'.' is no file"),
        (("dispatch", "--profile", "1:1"), "Missing argument 'OPERATOR', or --file"),
        (("dispatch", "matmul", "n=8", "k=8", "m=x", "--profile", "1:1"), "none.db"),
    ],
)
def test_bad_input(here, capsys, words, says):
    database = () if "--db" in words else ("--db", "none.db")
    assert run([*words, *database]) == 2
    said = one_line(capsys.readouterr().err)
    assert says in said
    assert len(said) <= 220
    assert [path.name for path in here.iterdir()] == ["notes.txt"]


def test_an_empty_database_and_one_of_others(tuned, here, capsys):
    words = ("dispatch", "softmax", "c=8", "--axis", "r", "--profile", "1-9:1")
    assert run([*words, "--db", str(tuned[0])]) == 2
    assert "no kernel of softmax c=8 is on record up to r=9" in one_line(capsys.readouterr().err)
    assert run(["query", "softmax", "r=*", "c=8", "--db", str(tuned[0])]) == 2
    assert "no kernel of softmax c=8 is on record for cpu" in one_line(capsys.readouterr().err)
