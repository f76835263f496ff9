"""Exported measurements of all versions, torn and compressed ones too."""

import gzip
import json
from pathlib import Path

import pytest

from tilewright.measure.database import Database
from tilewright.measure.records.jsonl import numbered_lines, read_lines
from tilewright.measure.records.record import Record
from tilewright.measure.testing.made_up import (
    TARGET,
    WORKLOAD,
)
from tilewright.spaces.errors import InputError

GOLDEN = Path(__file__).parents[1] / "golden"


def test_exports_of_version_1_are_read_for_ever(tmp_path):
    with Database(tmp_path / "new.db") as database:
        assert database.import_jsonl(GOLDEN / "measurements_v1.jsonl") == 3
        assert database.best(WORKLOAD, TARGET).measurement.score == 0.00125
        records = list(database.records())
    assert [record.template_version for record in records] == ["contraction.1"] * 3
    assert [record.run for record in records] == ["monday", "monday", ""]
    assert all(record.proposal is None and not record.doubted for record in records)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_exports_of_later_versions_are_read_for_ever(tmp_path, version):
    with Database(tmp_path / "new.db") as database:
        assert database.import_jsonl(GOLDEN / f"measurements_v{version}.jsonl") == 5
        (run,) = database.runs()
        assert run.configuration == {"trials": 128, "seconds": 60.0, "patience": None}
        database.export_jsonl(tmp_path / "again.jsonl")
    golden = (GOLDEN / "measurements_v4.jsonl").read_text()
    assert (tmp_path / "again.jsonl").read_text() == golden


def test_a_last_line_torn_anywhere_is_left_out(tmp_path):
    whole = (GOLDEN / "measurements_v3.jsonl").read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    good = [line for _, line in read_lines(GOLDEN / "measurements_v3.jsonl", pytest.fail)]
    path = tmp_path / "torn.jsonl"
    for end in range(last, len(whole) + 1):
        path.write_bytes(whole[:end])
        said = []
        found = [line for _, line in read_lines(path, said.append)]
        torn = last < end < len(whole) - 1
        assert found == (good if end >= len(whole) - 1 else good[:-1])
        assert said == ([f"line 7 of {path} is torn and was left out"] if torn else [])


@pytest.mark.parametrize("depth", [101, 900, 980, 984, 987, 990, 50_000])
@pytest.mark.parametrize("nest", [("[", "]"), ('{"a":', "}")], ids=["lists", "objects"])
@pytest.mark.parametrize("name", ["target", "info", "samples"])
def test_values_that_lie_deep_in_each_other_are_malformed(tmp_path, name, nest, depth):
    """Whatever of what reads them would run out of calls first."""
    before, after = nest
    deep = before * depth + "0" + after * depth
    *_, record = (GOLDEN / "measurements_v3.jsonl").read_text().splitlines()
    record = json.dumps({**json.loads(record), name: "DEEP"}).replace('"DEEP"', deep)
    path = tmp_path / "deep.jsonl"
    path.write_text(f'{{"format": "tilewright-measurements", "version": 3}}\n{record}\n')
    refused = r"line 2 of .* is malformed: (values lie more than 100 deep|not JSON)"
    with Database(tmp_path / "new.db") as database, pytest.raises(InputError, match=refused):
        database.import_jsonl(path)


def test_compressed_files_are_read_as_what_they_hold(tmp_path):
    plain = GOLDEN / "measurements_v3.jsonl"
    packed = tmp_path / "measurements.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert list(read_lines(packed, pytest.fail)) == list(read_lines(plain, pytest.fail))


@pytest.mark.parametrize("harm", [lambda data: data[:-9], lambda data: data[:40] + b"?" * 40])
def test_compressed_files_that_are_not_whole_are_refused(tmp_path, harm):
    packed = tmp_path / "measurements.jsonl.gz"
    whole = gzip.compress((GOLDEN / "measurements_v3.jsonl").read_bytes())
    packed.write_bytes(harm(whole))
    with pytest.raises(InputError, match=f"{packed} is no whole file of gzip: "):
        list(read_lines(packed, pytest.fail))


def test_the_keys_of_exports_of_every_version():
    """Of an epilogue's what it computes counts since schema 0005; plain products keep theirs."""
    keys = ["37fc6391b31562fe", "712a66765b3af182", "986ff57f26b7b6b5"]
    for version in (1, 2, 3, 4):
        lines = read_lines(GOLDEN / f"measurements_v{version}.jsonl", pytest.fail)
        found = [line.key[:16] for _, line in lines if isinstance(line, Record)]
        assert found[:3] == keys


def test_a_line_of_more_than_the_greatest_length_is_refused(tmp_path):
    """However small it was compressed."""
    first = (GOLDEN / "measurements_v3.jsonl").read_bytes().splitlines(keepends=True)[0]
    path = tmp_path / "long.jsonl.gz"
    with gzip.open(path, "wb") as file:
        file.write(first)
        for _ in range(9):
            file.write(b" " * (1 << 20))
    with pytest.raises(InputError, match=r"line 2 of .* is longer than the 8388608 bytes"):
        list(read_lines(path, pytest.fail))


def test_a_compressed_export_that_unpacks_to_far_more_than_its_size_is_refused(tmp_path):
    path = tmp_path / "bomb.jsonl.gz"
    with gzip.open(path, "wb") as file:
        file.write((GOLDEN / "measurements_v3.jsonl").read_bytes().splitlines(keepends=True)[0])
        line = b'{"type":"run",' + b" " * (4 << 20) + b"\n"
        for _ in range(20):
            file.write(line)
    with (
        pytest.raises(InputError, match="unpacks to more than 256 times its size"),
        numbered_lines(path) as (_, lines),
    ):
        for _ in lines:
            pass
