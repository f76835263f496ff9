"""``tilewright replay``: what it prints, and what it refuses."""

from __future__ import annotations

import json
import re

import pytest

from tests.scheduler.cli.command import TRIALS, ask, one_line
from tests.scheduler.replay.toys import CACHE, T4
from tilewright.scheduler.cli.app import run

FEW = ("--repeats", "3", "--trials", "6", "--batch", "2")


def as_json(capsys, *arguments):
    lines = ask(capsys, "replay", *arguments, "--format", "json").splitlines()
    return [json.loads(line) for line in lines]


def test_a_table_whose_lines_are_explained(capsys):
    out = ask(capsys, "replay", str(CACHE), "--search", "random,exhaustive", *FEW)
    assert "toy_GPU: 8 schedules, of which 1 failed; the fastest takes 2 ms" in out
    table, less, explained = out.split("\n\n")
    assert less.startswith("less those of random, seed by seed\n")
    labels = [line.split("  ")[0] for line in table.splitlines()[2:]]
    assert "fraction of the optimum at 6" in labels
    assert "P, calculated baseline" in labels
    assert [line.split(": ")[0] for line in explained.splitlines()] == labels


def test_json_has_a_line_for_each_search(capsys):
    random, exhaustive = as_json(capsys, str(CACHE), "--search", "random,exhaustive", *FEW)
    assert (random["search"], exhaustive["search"]) == ("random", "exhaustive")
    assert random["space"] == "toy_GPU"
    assert (random["schedules"], random["failures"]) == (8, 1)
    assert random["optimum_seconds"] == 2e-3
    assert (random["trials"], random["repeats"], random["batch"], random["seed"]) == (6, 3, 2, 0)
    assert exhaustive["gains"] == [[[1, 8e-3], [2, 6e-3], [3, 5e-3], [4, 4e-3], [5, 2e-3]]] * 3
    assert "less_first" not in random
    more = exhaustive["scores"]["fraction_6"]["value"] - random["scores"]["fraction_6"]["value"]
    assert exhaustive["less_first"]["fraction_6"]["value"] == pytest.approx(more)
    assert "reached_99" not in exhaustive["less_first"]
    scores = exhaustive["scores"]
    assert scores["fraction_6"] == {"value": 1.0, "low": 1.0, "high": 1.0}
    assert scores["evaluations_to_99"] == {"value": 5.0, "low": None, "high": None}
    assert not any("time" in key for key in scores)


def test_several_files_are_summed_up(capsys):
    lines = as_json(capsys, str(CACHE), str(T4), "--search", "exhaustive", *FEW)
    assert [line["space"] for line in lines] == ["toy_GPU", "toy_T4", None]
    assert lines[2]["spaces"] == ["toy_GPU", "toy_T4"]
    assert lines[2]["scores"]["reached_99"]["value"] == 1.0


def test_processes_change_nothing(capsys):
    def scores(jobs):
        made = as_json(capsys, str(CACHE), "--jobs", jobs, *FEW)
        for line in made:
            del line["scores"]["search_ms"]
        return made

    assert scores("1") == scores("2")


def test_the_time_axis(capsys):
    [line] = as_json(capsys, str(CACHE), "--search", "exhaustive", "--time", *FEW)
    assert line["scores"]["seconds_to_99"]["value"] == pytest.approx(0.15 + 0.14 + 0.13 + 0.44)


def test_an_export_of_ours_is_a_recorded_space(capsys, tuned, tmp_path):
    """One for each workload, with its templates' own features."""
    database, said = tuned
    export = tmp_path / "export.jsonl"
    ask(capsys, "export", str(export), "--db", str(database))
    lines = as_json(capsys, str(export), "--time", *FEW)
    assert len(lines) == len(said) + 1
    assert [line["schedules"] for line in lines[:-1]] == [TRIALS] * len(said)
    assert all("matmul m=" in line["space"] for line in lines[:-1])


def test_what_earlier_versions_of_templates_recorded_stays_a_space_of_its_own(
    capsys, tuned, tmp_path
):
    database, _ = tuned
    export = tmp_path / "export.jsonl"
    ask(capsys, "export", str(export), "--db", str(database))
    told = [line["schedules"] for line in as_json(capsys, str(export), *FEW)[:-1]]
    earlier, count = re.subn(r'("template_version": *"\w+)\.\d+"', r'\1.0"', export.read_text())
    assert count
    export.write_text(earlier)
    assert [line["schedules"] for line in as_json(capsys, str(export), *FEW)[:-1]] == told
    records = [json.loads(line) for line in earlier.splitlines()]
    first = next(record for record in records if "schedule" in record)
    for record in records:
        if all(record.get(name) == first[name] for name in ("workload", "schedule")):
            record["template_version"] = "another.1"
    export.write_text("\n".join(map(json.dumps, records)))
    left = [line["schedules"] for line in as_json(capsys, str(export), *FEW)[:-1]]
    assert sum(left) == sum(told) - 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((str(CACHE), "--search", "guessing"), "unknown search 'guessing'; allowed: evolutionary"),
        ((str(CACHE), "--search", ""), "unknown search ''"),
        ((str(CACHE), "--trials", "0"), "'--trials'"),
        ((str(CACHE), "--repeats", "0"), "'--repeats'"),
        ((str(CACHE), "--batch", "0"), "'--batch'"),
        ((str(CACHE), "--jobs", "0"), "'--jobs'"),
        ((str(CACHE), "--seed", "-1"), "'--seed'"),
        (("notes.txt",), "notes.txt is no recorded space"),
        (("missing.json",), "cannot read missing.json"),
        (("untimed.json", "--time"), "--time: untimed lacks compile and benchmark times"),
        (("export.jsonl",), "no schedule in it ran that can be made today"),
        ((), "Missing argument"),
    ],
)
def test_bad_requests(here, capsys, words, says):
    entry = {"cache": {"1": {"x": 1, "time": 1.0}}, "tune_params_keys": ["x"]}
    (here / "untimed.json").write_text(json.dumps(entry))
    (here / "export.jsonl").write_text('{"format":"tilewright-measurements","version":4}\n')
    assert run(["replay", *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert says in one_line(said.err)
