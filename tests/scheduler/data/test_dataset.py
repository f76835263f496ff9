"""A folder laid out as the Hugging Face hub has data sets: card, Parquet files, splits."""

from __future__ import annotations

import re

import pytest

from tests.scheduler.report.made_up import many, of_records, record
from tilewright.measure.database import Database
from tilewright.scheduler.cli.app import run

pytest.importorskip("pyarrow", reason="needs the extra data")


def exported(db, out, *more) -> int:
    return run(["export", str(out), "--db", str(db), "--format", "dataset", *more])


def test_splits_share_no_workload_and_lose_no_row(tmp_path, capsys):
    from pyarrow import parquet

    db, out = many(tmp_path / "many", 5, 3), tmp_path / "kernels"
    assert exported(db, out) == 0
    assert f"15 records and a card written to {out}" in capsys.readouterr().out
    card = (out / "README.md").read_text()
    _, front, text = card.split("---\n", 2)
    places = dict(re.findall(r"- split: (\w+)\n    path: (\S+)", front))
    assert places == {"train": "data/train-*.parquet", "test": "data/test-*.parquet"}
    assert "- n<1K" in front
    assert text.startswith("\n# kernels: measured schedules of kernels\n")
    assert "## Splits" in text
    tables = {part: [*map(parquet.read_table, out.glob(at))] for part, at in places.items()}
    rows = {part: sum(table.num_rows for table in each) for part, each in tables.items()}
    assert rows == {"train": 12, "test": 3}
    workloads = {part: set(each[0]["workload"].to_pylist()) for part, each in tables.items()}
    assert not workloads["train"] & workloads["test"]
    assert tables["train"][0].schema == tables["test"][0].schema
    with Database(db, create=False) as database:
        keys = {each.key for each in database.records()}
    assert keys == {key for each in tables.values() for key in each[0]["key"].to_pylist()}


def test_a_lone_workload_has_no_test_split(tmp_path):
    out = tmp_path / "kernels"
    assert exported(of_records(tmp_path / "one", [record(1, 1e-3)]), out, "--features") == 0
    assert [path.name for path in (out / "data").iterdir()] == ["train-00000-of-00001.parquet"]
    assert "split: test" not in (out / "README.md").read_text()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--operator", "softmax"), "no attempt that these options select"),
        (("--limit", "3"), "--limit is for records"),
        (("--sort", "latency_s"), "--sort is for tables"),
    ],
)
def test_bad_data_sets(tmp_path, capsys, words, says):
    db = of_records(tmp_path / "one", [record(1, 1e-3)])
    assert exported(db, tmp_path / "out", *words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line


def test_a_file_is_no_folder(tmp_path, capsys):
    db = of_records(tmp_path / "one", [record(1, 1e-3)])
    (tmp_path / "out").write_text("x")
    assert exported(db, tmp_path / "out") == 2
    assert "is no folder" in capsys.readouterr().err
    assert exported(db, "-") == 2
    assert "writes files; allowed: a folder" in capsys.readouterr().err
