"""Parallel coordinates: a line a trial, through its latency and its decisions."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

from tests.scheduler.report.made_up import HOSTILE, PRINTABLE, of_records, record, tuned
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import ErrorKind
from tilewright.scheduler.report.figures import parallel
from tilewright.scheduler.report.material import Material, read_materials
from tilewright.spaces.schedule import Schedule

SVG = "{http://www.w3.org/2000/svg}"


def material_of(db: Path) -> Material:
    with Database(db, create=False) as database:
        (found,) = read_materials(database)
        return found


def drawn(picture: str) -> tuple[dict[int, dict[str, str]], dict[int, str]]:
    """The values that each trial's line passes, by the ticks of the axes, and its group."""
    root = ET.fromstring(picture)
    axes = [
        (group.get("data-name", ""), dict(json.loads(group.get("data-ticks", ""))))
        for group in root.iter(f"{SVG}g")
        if group.get("data-name")
    ]
    values: dict[int, dict[str, str]] = {}
    groups: dict[int, str] = {}
    for path in root.iter(f"{SVG}path"):
        if (told := path.get("data-trials")) is None:
            continue
        lines = path.get("d", "").split("M")[1:]
        for line, facts in zip(lines, told.split(","), strict=True):
            start, *steps = re.findall(r"-?\d+", line.removesuffix("v0"))[::2]
            places = accumulate(map(int, steps), initial=int(start))
            number = int(facts.split(" ")[0])
            passed = zip(axes, places, strict=True)
            values[number] = {name: ticks.get(place, "") for (name, ticks), place in passed}
            groups[number] = path.get("class", "").split()[1]
    return values, groups


def test_each_trial_is_a_line_through_its_decisions(tmp_path):
    material = material_of(tuned(tmp_path))
    figure = parallel(material)
    values, groups = drawn(figure.svg())
    assert figure.count == len(values) == len(material.searched) == 48
    for number, trial in material.numbered:
        known = {name: str(value) for name, value in trial.schedule.decisions}
        passed = values[number]
        latency = passed.pop("latency")
        assert passed.items() <= known.items()
        assert (latency == "failed") == (trial.measurement.score is None)
    least = min(material.numbered, key=lambda each: each[1].measurement.score or 1e9)[0]
    assert groups[least] == "g0"
    assert set(groups.values()) == {"g0", "g1", "g2", "g3"}


def test_decisions_of_one_template_alone_have_a_place_for_others(tmp_path):
    other = Schedule("other", (("steps", 4), ("mc", "all")))
    trials = [record(n, 1e-3 * n) for n in range(1, 4)]
    trials.append(record(4, None, kind=ErrorKind.CRASH, measured={"schedule": other}))
    values, _ = drawn(parallel(material_of(of_records(tmp_path / "two", trials))).svg())
    assert values[1] | {"latency": ""} == {
        "latency": "", "template": "contraction", "mc": "1", "packed": "True", "steps": "-",
    }  # fmt: skip
    assert values[4] == {
        "latency": "failed", "template": "other", "mc": "all", "packed": "-", "steps": "4",
    }  # fmt: skip


def test_one_trial_and_names_of_a_stranger_are_drawn(tmp_path):
    one = parallel(material_of(of_records(tmp_path / "one", [record(1, 1e-3)])))
    assert drawn(one.svg())[0].keys() == {1}
    schedules = [Schedule(PRINTABLE, ((PRINTABLE, f"{n}{PRINTABLE}"),)) for n in range(2)]
    trials = [
        replace(record(n, 1e-3, text=HOSTILE, measured={"schedule": each}), run="")
        for n, each in enumerate(schedules)
    ]
    values, _ = drawn(parallel(material_of(of_records(tmp_path / "hostile", trials))).svg())
    assert [each[PRINTABLE] for each in values.values()] == [f"{n}{PRINTABLE}" for n in range(2)]
