"""``tilewright suite``: sealed suites, and records that come back."""

import pytest

from tests.scheduler.cli.command import ask, one_line
from tilewright.measure.database import Database
from tilewright.scheduler.cli.app import run
from tilewright.scheduler.suites.suite import Member, Suite
from tilewright.scheduler.suites.writing import text_of
from tilewright.spaces.operators import workload

SECRET = [
    workload("matmul m=16 n=32 k=24 epilogue='relu(x + secret[n])'"),
    workload("softmax r=8 c=16"),
]
SUITE = Suite("the model", tuple(Member(work, 3.0, "layer") for work in SECRET))


def test_records_that_come_back_are_matched_by_key(here, capsys):
    (here / "mine.toml").write_text(text_of(SUITE))
    words = ("--decoys", "1", "--target", "cpu")
    said = ask(capsys, "suite", "seal", "mine.toml", "--out", "sealed.toml", *words)
    assert said == "2 workloads and 1 decoy written to sealed.toml\n"
    budget = ("--trials", "6", "--seconds", "60")
    ask(capsys, "tune", "--suite", "sealed.toml", *budget, "--db", "there.db", "-q")
    ask(capsys, "export", "results.jsonl", "--db", "there.db")
    said = ask(capsys, "suite", "match", "mine.toml", "results.jsonl", "--db", "here.db")
    with Database("there.db") as there, Database("here.db") as database:
        mine = {work.key for work in SECRET}
        kept = list(database.records())
        assert {record.workload.key for record in kept} == mine
        theirs = list(there.records())
        assert len(kept) == sum(record.workload.key in mine for record in theirs)
    lines = said.splitlines()
    assert lines[0] == f"{len(kept)} new records in here.db"
    assert lines[1] == f"{len(theirs) - len(kept)} records of other workloads left aside"
    assert len(lines) == 2
    alone = Suite("another", (Member(workload("softmax r=8 c=17")),))
    (here / "another.toml").write_text(text_of(alone))
    said = ask(capsys, "suite", "match", "another.toml", "results.jsonl", "--db", "other.db")
    assert said.startswith("0 new records in other.db")
    assert said.splitlines()[-1].startswith("no record of ")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("seal", "nothing.toml", "--out", "x.toml"), "suite 'nothing.toml'"),
        (("match", "bert-base", "nothing.jsonl"), "there is no file nothing.jsonl"),
    ],
)
def test_bad_input_is_one_line(words, says, here, capsys):
    assert run(("suite", *words)) == 2
    assert says in one_line(capsys.readouterr().err)


def test_shipped_suites_are_listed(capsys):
    assert "bert-base" in ask(capsys, "suite", "list")
