"""The page of a kernel in six steps shows what the steps' schedules and results say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from experiments.kernel_steps import __main__ as timing
from experiments.kernel_steps.plot import draw, read
from experiments.kernel_steps.steps import PRODUCTS, STEPS
from tests.pages import BLOCK
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import detect_target
from tilewright.spaces.testing.targets import made_up_cpu

PAGE = Path(__file__).parents[2] / "docs/explained/a-kernel.md"
CHAPTERS = re.split(r"\n## \d\. ", PAGE.read_text())[1:]

EACH = pytest.mark.parametrize(("step", "chapter"), list(zip(STEPS, CHAPTERS, strict=True)))
MACHINES = {
    "avx2": made_up_cpu(isa="avx2", vector_bytes=32, vector_registers=16, l2_bytes=2**19),
    "avx512": made_up_cpu(l2_bytes=2**21),
}


def on(machine, kind):
    """Return the machine, or a GPU as a target of this kind."""
    return machine if kind == "cpu" else detect_target("cuda:sm_90a")


def test_each_step_has_a_chapter_of_its_name():
    titles = [chapter.partition("\n")[0].lower() for chapter in CHAPTERS]
    assert titles == [step.idea for step in STEPS]


@EACH
def test_a_chapter_shows_lines_of_its_kernel_in_their_order(step, chapter):
    space = step.space(workload(PRODUCTS[step.kind]), on(MACHINES["avx2"], step.kind))
    source = space.lower(step.schedule(space)).source.text
    lines = iter([line.strip() for line in source.splitlines()])
    (shown,) = [text for _, language, text in BLOCK.findall(chapter) if language == "c"]
    for line in shown.splitlines():
        if line.strip() not in ("...", "}"):
            assert line.strip() in lines, line


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.idea)
def test_every_machine_has_the_schedule(step, machine):
    space = step.space(workload(PRODUCTS[step.kind]), on(machine, step.kind))
    assert Schedule.from_text(step.text).values.items() <= step.schedule(space).values.items()


@EACH
def test_a_chapter_has_the_decisions_that_are_timed(step, chapter):
    (written,) = re.findall(r'"(\w+: [^"]+)"', chapter.replace("\\\n", " "))
    assert (
        Schedule.from_text(step.text).values.items() <= Schedule.from_text(written).values.items()
    )


def test_the_picture_is_that_of_the_results():
    assert timing.PICTURE.read_text() == draw(read(timing.RESULTS))


def test_steps_are_timed_in_turns(tmp_path, capsys):
    out = tmp_path / "cpu.json"
    timing.main(["--seconds", "0", "--out", str(out)])
    found = json.loads(out.read_text())["seconds"]
    assert list(found) == [step.idea for step in STEPS if step.kind == "cpu"]
    assert "packed operands" in capsys.readouterr().out
