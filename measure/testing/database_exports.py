"""Exports and imports of a database."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.measure.database import Database
from tilewright.measure.testing.made_up import (
    FEW,
    HUGE,
    TARGET,
    VERSION,
    WORKLOAD,
    DatabaseTests,
    failed,
    measured,
    possible,
)
from tilewright.spaces.errors import InputError


class ExportsContract(DatabaseTests):
    @FEW
    @given(some=st.lists(possible, max_size=3))
    def test_export_and_import_lose_nothing(self, database, tmp_path, some):
        self.put(database, *some)
        everything = list(database.records())
        assert database.export_jsonl(tmp_path / "all.jsonl") == len(everything)
        with Database(tmp_path / "other.db") as other:
            other.import_jsonl(tmp_path / "all.jsonl", pytest.fail)
            assert other.import_jsonl(tmp_path / "all.jsonl") == 0
            assert list(other.records()) == everything
            other.export_jsonl(tmp_path / "again.jsonl")
        assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "all.jsonl").read_bytes()

    def test_import_adds_to_what_is_there(self, database, tmp_path):
        self.put(database, measured(1, 1.0, at=1.0), measured(2, 1.0, at=2.0))
        database.export_jsonl(tmp_path / "two.jsonl")
        self.put(database, measured(3, 0.5, at=3.0))
        with Database(tmp_path / "other.db") as other:
            self.put(other, measured(2, 1.0, at=2.0), measured(4, 0.4, at=4.0))
            assert other.import_jsonl(tmp_path / "two.jsonl") == 1
            assert {record.schedule["mc"] for record in other.records()} == {1, 2, 4}

    def test_an_export_of_several_spellings_is_imported_as_one_workload(self, database, tmp_path):
        """Import an export as versions wrote it that knew a product by the text of its epilogue."""
        self.put(database, measured(1, 1.0, at=1.0), measured(2, 1.0, at=2.0))
        database.export_jsonl(tmp_path / "two.jsonl")
        header, first, second = (tmp_path / "two.jsonl").read_text().splitlines()
        spelt = second.replace("relu(x + bias[n])", "max(b[n] + x, 0)")
        assert spelt != second
        (tmp_path / "old.jsonl").write_text("\n".join([header, first, spelt, second, ""]))
        with Database(tmp_path / "other.db") as other:
            assert other.import_jsonl(tmp_path / "old.jsonl") == 2
            assert other.pairs() == [(WORKLOAD, TARGET)]
            assert [r.key for r in other.records()] == [r.key for r in database.records()]

    def test_records_that_cannot_be_true_are_refused_and_the_others_imported(
        self, database, tmp_path
    ):
        honest = [measured(1, 1e-3), failed(2), measured(3, 2e-3, "final")]
        self.put(database, honest[0], replace(measured(4, 1e-12, "final"), started_at=9e9))
        self.put(database, honest[1], measured(5, 1e-12), replace(measured(6, 1.0), samples=()))
        self.put(database, honest[2], replace(measured(7, 1e-3), score=0.9e-3))
        database.export_jsonl(tmp_path / "some.jsonl")
        reports = []
        with Database(tmp_path / "other.db") as other:
            assert other.import_jsonl(tmp_path / "some.jsonl", reports.append) == len(honest)
            assert [record.measurement for record in other.records()] == honest
            assert other.best(WORKLOAD, TARGET).measurement == honest[0]
        assert [report.replace(str(tmp_path), "") for report in reports] == [
            "2 of the records of /some.jsonl were refused: scores that their hardware cannot reach "
            "(the first in line 3)",
            "1 of the records of /some.jsonl were refused: scores without samples "
            "(the first in line 6)",
            "1 of the records of /some.jsonl were refused: scores that are not the statistic of "
            "their samples (the first in line 8)",
        ]

    def test_a_torn_last_line_is_reported_and_left_out(self, database, tmp_path):
        path = tmp_path / "torn.jsonl"
        self.put(database, measured(1, 1.0), measured(2, 1.0))
        database.export_jsonl(path)
        whole = path.read_bytes()
        lines = whole.splitlines(keepends=True)
        cuts = random.Random(1).sample(range(1, len(lines[-1]) - 1), 10)
        for cut in cuts:
            path.write_bytes(whole[: -len(lines[-1]) + cut])
            reports = []
            with Database(tmp_path / f"{cut}.db") as other:
                assert other.import_jsonl(path, reports.append) == 1
            (report,) = reports
            assert "line 3" in report

    def test_a_last_line_without_its_newline_counts(self, database, tmp_path):
        path = tmp_path / "cut.jsonl"
        self.put(database, measured(1, 1.0), measured(2, 1.0))
        database.export_jsonl(path)
        path.write_bytes(path.read_bytes()[:-1])
        with Database(tmp_path / "other.db") as other:
            assert other.import_jsonl(path, pytest.fail) == 2

    @pytest.mark.parametrize(
        ("spoil", "says"),
        [
            (lambda line: "{", "line 2 of .* is malformed: not JSON"),
            (lambda line: "[]", "expected a JSON object"),
            (lambda line: line.replace('"ok"', '"great"'), "allowed: ok, slow, error, lost"),
            (lambda line: line.replace('"m":64', '"m":-64'), "m=-64"),
            (lambda line: line.replace('"clock"', '"watch"'), "'clock' is missing"),
            (lambda line: line.replace('"clock"', '"more":1,"clock"'), "'more' is unknown"),
            (lambda line: line.replace('"isa"', '"usa"'), "malformed description of a cpu target"),
            (lambda line: line.replace('"mc":1', '"mc":[1]'), r"decision 'mc' has value \[1\]"),
            (lambda line: line.replace('"score":1.0', '"score":1e999'), "score=inf"),
            (lambda line: line.replace('"score":1.0', '"score":NaN'), "NaN"),
            (lambda line: line.replace('"started_at":0.0', '"started_at":1e999'), "inf"),
            (lambda line: line.replace('"m":64', '"operator":1'), "no parameter 'operator'"),
            (lambda line: "[" * 100_000, "not JSON"),
            (lambda line: line.replace('"score":1.0', f'"score":{HUGE}'), "score=1000"),
            (lambda line: line.replace('"samples":[', f'"samples":[{HUGE},'), "samples="),
            (lambda line: line.replace('"samples":[', '"samples":[-1,'), "samples=.-1, .*from 0"),
            (
                lambda line: line.replace('"reference_samples":[', '"reference_samples":[-1'),
                "reference_samples=.-1.*from 0",
            ),
            (
                lambda line: line.replace('"run_seconds":', '"run_seconds":-1'),
                "run_seconds=-1.*from 0",
            ),
            (lambda line: line.replace('"started_at":0.0', f'"started_at":{HUGE}'), "started_at=1"),
            (
                lambda line: line.replace('"recorded_at":', f'"recorded_at":{HUGE}'),
                "recorded_at=inf",
            ),
            (lambda line: line.replace('"cores":4', f'"cores":{HUGE}'), "target=1000"),
            (lambda line: line.replace('"mc":1', f'"mc":{10**30}'), "decision 'mc' has value 1000"),
            (lambda line: line.replace("mnk", "\\u001b[31m"), "decision 'order' has value"),
            (lambda line: line.replace("mnk", "m" * 5000), "decision 'order' has value"),
            (lambda line: line.replace("Example", "\\u001b]0;PWNED"), "target='.x1b]0;PWNED CPU'"),
            (lambda line: line.replace("Example", "\\ud800"), "target='.ud800 CPU'"),
            (lambda line: line.replace("relu", "\\u202e"), "workload='.u202e"),
            (lambda line: line.replace(VERSION, "\\ud800"), "template_version='.ud800' is"),
            (lambda line: line.replace('"clock":"cpu"', '"clock":"\\ud800"'), "clock='.ud800' is"),
        ],
    )
    def test_a_malformed_line_is_named(self, database, tmp_path, spoil, says):
        path = tmp_path / "bad.jsonl"
        self.put(database, measured(1, 1.0), measured(2, 1.0))
        database.export_jsonl(path)
        header, first, second = path.read_text().splitlines()
        path.write_text("\n".join((header, spoil(first), second, "")))
        with Database(tmp_path / "other.db") as other, pytest.raises(InputError, match=says):
            other.import_jsonl(path)

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("", "not an export"),
            ('{"a": 1}\n', "not an export"),
            ("\x00\x01", "not an export"),
            ('{"format":"tilewright-measurements","version":5}\n', "version 5; allowed: up to 4"),
            ('{"format":"tilewright-measurements","version":true}\n', "version True; allowed"),
            ('{"format":"tilewright-measurements","version":-1}\n', "version -1; allowed"),
        ],
    )
    def test_foreign_files_are_refused(self, database, tmp_path, text, says):
        (tmp_path / "foreign").write_text(text)
        with pytest.raises(InputError, match=says):
            database.import_jsonl(tmp_path / "foreign")

    def test_unreadable_and_unwritable_files(self, database, tmp_path):
        with pytest.raises(InputError, match="cannot read"):
            database.import_jsonl(tmp_path / "missing")
        with pytest.raises(InputError, match="cannot write"):
            database.export_jsonl(tmp_path / "no" / "folder")
        for place, says in (
            ("/dev/full", "cannot write /dev/full: No space"),
            (tmp_path, "no file"),
        ):
            kind = Path(place).stat().st_mode
            with pytest.raises(InputError, match=says):
                database.export_jsonl(place)
            assert Path(place).stat().st_mode == kind
