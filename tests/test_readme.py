"""Every block of code in README.md runs, from top to bottom, in one folder; results that pages of
experiments name are there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCK = re.compile(r"(<!-- not run by tests: [^>]+ -->\n)?```(\w+)\n(.*?)\n```", re.DOTALL)
RESULT = re.compile(r"`((?:[\w./]*\bresults/)?[\w-]+\.(?:json|svg|jsonl\.gz))`")
PATHS = os.pathsep.join(map(str, (ROOT, ROOT / "scheduler/face")))


def command_of(language: str, text: str) -> list[str]:
    if language == "python":
        return [sys.executable, "-c", text]
    return ["/bin/sh", "-e", "-c", text]


def quickly(text: str) -> str:
    """The same with few schedules and trials: as many as training and a suite need, or next to
    none."""
    trials = 8 if re.search("train|suite", text) else 2
    text = re.sub(r"trials([= ])\d+", rf"trials\g<1>{trials}", text)
    return re.sub(r"--schedules \d+", "--schedules 1", text)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "version", [quickly, pytest.param(str, marks=pytest.mark.slow, id="as_it_stands")]
)
def test_every_block_runs(tmp_path, version):
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "bin").mkdir()
    tilewright = tmp_path / "bin/tilewright"
    tilewright.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tilewright "$@"\n')
    tilewright.chmod(0o755)
    path = os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "PYTHONPATH": PATHS}
    for reason, language, text in BLOCK.findall(README):
        if reason:
            continue
        assert language in ("python", "sh")
        command = command_of(language, version(text))
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        assert done.stderr == "" or "--source" in text, f"{text}\n{done.stderr}"
    assert (folder / "kernel.c").read_text().startswith("// matmul m=256 n=256 k=256")
    assert (folder / "kernel.cu").read_text().startswith("// matmul m=4096")


def test_no_block_is_written_another_way():
    assert not re.search(r"^    \S", README, re.MULTILINE)
    assert README.count("```") == 2 * len(BLOCK.findall(README))


@pytest.mark.parametrize(
    "page", sorted(ROOT.glob("experiments/*/README.md")), ids=lambda page: page.parent.name
)
def test_the_results_that_a_page_names_are_there(page):
    for name in RESULT.findall(page.read_text()):
        places = (page.parent, page.parent / "results", ROOT)
        assert any((place / name).is_file() for place in places), name


def test_the_targets_of_make_are_there():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
