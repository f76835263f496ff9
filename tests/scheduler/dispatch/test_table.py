"""Tables as data: they come back unchanged, and malformed ones are refused."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.scheduler.dispatch.records import PRODUCT, put
from tilewright.scheduler.dispatch.costs import Torch, known_kernels
from tilewright.scheduler.dispatch.family import family_of
from tilewright.scheduler.dispatch.making import Request, selected
from tilewright.scheduler.dispatch.profile import as_profile
from tilewright.scheduler.dispatch.python_text import python_text, save_python
from tilewright.scheduler.dispatch.table import OpenRange, Table, read_table, table_from_json
from tilewright.spaces.errors import InputError
from tilewright.spaces.target import detect_target

PROFILE = "1:.4,2-8:.3,20-90:.3"


@pytest.fixture
def table(database) -> Table:
    target, profile = detect_target("cpu"), as_profile(PROFILE)
    put(database, {1: 1e-4, 8: 2e-4, 64: 9e-4}, target)
    family = family_of(PRODUCT, "m", profile)
    known = known_kernels(family, profile, target, database)
    return selected(Request(family, profile, target, 3), known, Torch(), known)


def test_every_size_has_a_row_and_pieces_that_cover_it(table):
    assert [row.first for row in table.rows] == [1, *(row.last + 1 for row in table.rows[:-1])]
    assert table.last == 90
    sizes = {kernel.size for kernel in table.kernels}
    for size in range(1, 91):
        row = table.row(size)
        assert row.first <= size <= row.last
        pieces = table.pieces(size)
        covered = [range(piece.first, piece.first + piece.rows) for piece in pieces]
        assert set().union(*covered) == set(range(size))
        assert {piece.size for piece in pieces} <= sizes
        assert all(piece.rows == min(piece.size, piece.rows) <= size for piece in pieces)
    assert table.row(0) is table.row(91) is table.row(-5) is None


def test_a_file_gives_it_back(table, tmp_path):
    path = tmp_path / "table.json"
    table.save(path)
    assert read_table(path) == table
    assert {kernel.provenance for kernel in table.kernels} == {"measured"}
    assert table_from_json(json.loads(json.dumps(table.to_json()))) == table


def test_a_file_without_open_kernels_is_read(table):
    data = table.to_json() | {"version": 1}
    data["kernels"] = [{k: v for k, v in each.items() if k != "open"} for each in data["kernels"]]
    assert table_from_json(data) == table


def test_open_kernels_of_a_size_come_back_and_those_of_earlier_files_are_read(table):
    kernel = table.kernels[-1]
    other = replace(kernel.schedule, template="other")
    ranges = (OpenRange(kernel.size - 4, other), OpenRange(kernel.size, kernel.schedule))
    several = replace(table, kernels=(*table.kernels[:-1], replace(kernel, opened=ranges)))
    assert table_from_json(json.loads(json.dumps(several.to_json()))) == several
    assert several.open_sizes == {kernel.size}
    one = replace(kernel, opened=(OpenRange(kernel.size, kernel.schedule),))
    data = table.to_json() | {"version": 2}
    for each in data["kernels"]:
        each["open"] = each["size"] == kernel.size
    assert table_from_json(data).kernels == (*table.kernels[:-1], one)


def test_malformed_open_kernels(table):
    data = table.to_json()
    size, schedule = (data["kernels"][-1][name] for name in ("size", "schedule"))
    whole = {"last": size, "schedule": schedule}
    for value, says in (
        (True, "open=True is not allowed; allowed: a list of 0 to 64"),
        ([{"last": 1, "schedule": schedule}], rf"up to \[1\] rows; allowed: up to {size}"),
        ([whole, whole], "open kernels for up to"),
        ([whole | {"last": "x"}], "last='x'"),
        ([whole | {"schedule": None}], "schedule=None of an open kernel"),
        ([whole | {"more": 1}], "field 'more' is unknown"),
    ):
        data["kernels"][-1]["open"] = value
        with pytest.raises(InputError, match=says):
            table_from_json(data)


CHANGES = {
    "format": ("other", "format='other' is not allowed; allowed: tilewright-dispatch"),
    "version": (4, "version=4 is not allowed; allowed: 1 to 3"),
    "operator": ("__import__('os')", "__import__"),
    "parameters": ([], "parameters=[] is not allowed"),
    "axis": ("q", "matmul has no parameter 'q'"),
    "target": ({"kind": "tpu"}, "tpu"),
    "profile": ("1:2,1:3", "overlap"),
    "kernels": ([], "kernels=[] is not allowed; allowed: a list of 1 to 64"),
    "rows": ("x", "rows='x' is not allowed"),
    "regret": (-1.0, "regret=-1.0 is not allowed"),
    "worst": ("much", "worst='much'"),
    "worst_at": (1.5, "worst_at=1.5"),
}


@pytest.mark.parametrize("name", [*CHANGES])
def test_malformed_fields(table, name):
    value, says = CHANGES[name]
    with pytest.raises(InputError) as refused:
        table_from_json(table.to_json() | {name: value})
    assert says in str(refused.value)
    data = table.to_json()
    del data[name]
    with pytest.raises(InputError, match=f"field '{name}' is missing"):
        table_from_json(data)


@pytest.mark.parametrize(
    ("place", "field", "value", "says"),
    [
        (0, "first", 2, "allowed: rows without gaps, here from 1"),
        (0, "last", 0, "row 1 to 0"),
        (0, "last", 5, "without gaps"),
        (-1, "last", 91, "rows end at 91; allowed: 90"),
        (0, "size", 5, "of kernels that are listed"),
        (0, "torch", 1, "torch=1"),
    ],
)
def test_malformed_rows(table, place, field, value, says):
    data = table.to_json()
    data["rows"][place][field] = value
    with pytest.raises(InputError) as refused:
        table_from_json(data)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("size", 0, "kernels of sizes"),
        ("size", 1e9, "size=1000000000.0"),
        ("seconds", "1", "seconds='1'"),
        ("provenance", "guessed", "allowed: measured, estimated"),
        ("provenance", "estimated", "of a kernel that is estimated is not allowed"),
        ("schedule", None, "schedule=None of a kernel that is measured"),
        ("schedule", "x", "schedule='x'"),
        ("schedule", {"template": "x"}, "not a schedule"),
        ("more", 1, "field 'more' is unknown"),
    ],
)
def test_malformed_kernels(table, field, value, says):
    data = table.to_json()
    data["kernels"][0][field] = value
    with pytest.raises(InputError) as refused:
        table_from_json(data)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "Expecting value"),
        (b"\xff", "decode"),
        (b"[]", "expected a JSON object"),
        (b"{}", "'format'"),
    ],
)
def test_files_that_are_no_tables(tmp_path, content, says):
    path = tmp_path / "table.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match="is no table") as refused:
        read_table(path)
    assert says in str(refused.value)
    path.write_bytes(b"[" * 100_000)
    with pytest.raises(InputError, match="nested too deeply"):
        read_table(path)
    with pytest.raises(InputError, match="cannot read the table"):
        read_table(tmp_path / "none.json")


def test_the_exported_module_runs_and_agrees(table, tmp_path):
    save_python(table, tmp_path / "table.py")
    program = (
        "import sys, table\n"
        "print([table.choose(size) for size in range(1, 91)])\n"
        "print([table.prefers_torch(size) for size in range(1, 91)], 'tilewright' in sys.modules)\n"
        "for size in (0, 91):\n"
        "    try: table.choose(size)\n"
        "    except ValueError as error: print(error)\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    chosen = [table.row(size).size for size in range(1, 91)]
    says = "m={} is not in the table; allowed: 1 to 90"
    lines = [str(chosen), f"{[False] * 90} False", says.format(0), says.format(91)]
    assert done.stdout.splitlines() == lines


def test_the_exported_module_is_data_whatever_names_say(table):
    from dataclasses import replace

    hostile = '"""\nimport os\n'
    family = replace(table.family, parameters=(("epilogue", hostile),))
    names: dict[str, object] = {}
    exec(python_text(replace(table, family=family)), names)
    assert "os" not in names
    assert hostile.split('"')[-1] in names["WORKLOAD"]
