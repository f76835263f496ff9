"""Tables of a user's own: kept by their digests, which are part of what is tuned."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tilewright.scheduler.cli.app import run
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program
from tilewright.spaces.language.given import digest_of, given_table
from tilewright.spaces.language.inputs import draw
from tilewright.spaces.workloads.tables import with_tables

BY_TABLE = "row: int32[e](sorted < r); y[r,c] = sum[e: row[e] == r](x[e,c])"
BY_POINTERS = "ptr: int32[r+1](sorted < e+1); y[r,c] = sum[e: ptr[r] <= e < ptr[r + 1]](x[e,c])"
ROWS = np.array([0, 0, 0, 2, 2, 3])
SIZES = ["r=4", "e=6", "c=5"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "graph.npy"
    np.save(path, ROWS.astype(np.int32))
    return path


def test_a_given_table_is_drawn_and_part_of_the_identity():
    plain = program(BY_TABLE, r=4, e=6, c=5)
    found = with_tables(plain, {"row": ROWS})
    assert found.digest != plain.digest != with_tables(plain, {"row": ROWS[::-1].copy() * 0}).digest
    assert draw(found, 1)["row"].tolist() == draw(found, 2)["row"].tolist() == ROWS.tolist()
    again = program(found.text)
    assert again.digest == found.digest
    assert draw(again, 3)["row"].tolist() == ROWS.tolist()
    assert digest_of(ROWS) == digest_of(ROWS.astype(np.int8)) != digest_of(ROWS.reshape(2, 3))


def test_pointers_are_given_as_well():
    found = with_tables(program(BY_POINTERS, r=4, e=6, c=5), {"ptr": np.array([0, 3, 3, 5, 6])})
    assert draw(found, 1)["ptr"].tolist() == [0, 3, 3, 5, 6]


def test_commands_take_tables(file: Path, tmp_path: Path, capsys) -> None:
    asked = [BY_TABLE, *SIZES, "--table", f"row={file}"]
    database = ["--db", str(tmp_path / "found.db")]
    assert run(["tune", *asked, *database, "--trials", "2", "-q"]) == 0
    capsys.readouterr()
    assert run(["query", *asked, *database, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["provenance"] == "measured"
    assert run(["query", BY_TABLE, *SIZES, *database, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["provenance"] != "measured"
    assert run(["show", *asked]) == 0
    assert f"sorted < 4, table={digest_of(ROWS)}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("row", "--table 'row' names no file; allowed: row=graph.npy"),
        ("row=missing.npy", "cannot read the table missing.npy: No such file or directory"),
        ("x=graph.npy", "x has the shape (6, 5), its table (6,); allowed: the same"),
        ("row=falls.npy", "row is not sorted: it falls after entry 0"),
        ("row=beyond.npy", "row holds the index 4; allowed: 0 to 3"),
        ("row=short.npy", "row has the shape (6,), its table (3,); allowed: the same"),
        ("row=reals.npy", "row holds float64; allowed: int32"),
        ("row=pickled.npy", "cannot read the table pickled.npy: it is no array of NumPy's (.npy)"),
        ("row=text.npy", "cannot read the table text.npy: it is no array of NumPy's (.npy)"),
    ],
)
def test_bad_tables_are_refused_in_one_line(table, says, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("graph.npy", ROWS)
    np.save("falls.npy", ROWS[::-1])
    np.save("beyond.npy", ROWS + 1)
    np.save("short.npy", ROWS[:3])
    np.save("reals.npy", ROWS / 2)
    np.save("pickled.npy", np.array([{}], object), allow_pickle=True)
    Path("text.npy").write_text("0 1 2")
    assert run(["show", BY_TABLE, *SIZES, "--table", table]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line
    assert len(line) <= 200


def test_a_table_that_is_not_here_is_asked_for() -> None:
    made = program(BY_TABLE.replace("< r)", "< r, table=x0123456789abcdef)"), r=4, e=6, c=5)
    with pytest.raises(InputError, match="the table x0123456789abcdef is not here; give it again"):
        draw(made, 0)


def test_a_table_whose_file_was_changed_is_not_taken() -> None:
    with_tables(program(BY_TABLE, r=4, e=6, c=5), {"row": np.array([0, 0, 1, 1, 1, 3])})
    import platformdirs

    name = digest_of(np.array([0, 0, 1, 1, 1, 3]))
    np.save(platformdirs.user_cache_path("tilewright") / "tables" / f"{name}.npy", ROWS)
    with pytest.raises(InputError, match="is not here"):
        given_table(name, (6,))


@pytest.mark.parametrize(
    "text", ["table=5", "table=y0123", "table=x012", "table=xzz23456789abcdef"]
)
def test_names_of_tables_are_digests(text) -> None:
    with pytest.raises(InputError, match="no digest; allowed: what show prints"):
        program(BY_TABLE.replace("< r)", f"< r, {text})"), r=4, e=6, c=5)
