"""Every block of code in README.md runs, from top to bottom, in one folder; results that pages of
experiments name are there."""

from __future__ import annotations

import re

import pytest

from tests.pages import BLOCK, ROOT, blocks, environment, quickly, run_all

PAGE = ROOT / "README.md"
README = PAGE.read_text()
READMES = sorted(ROOT.glob("experiments/*/README.md"))
EXPERIMENTS = READMES + sorted(ROOT.glob("experiments/*/tried.md"))
RESULT = re.compile(r"`((?:[\w./]*\bresults/)?[\w-]+\.(?:json|svg|jsonl\.gz))`")


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "version", [quickly, pytest.param(str, marks=pytest.mark.slow, id="as_it_stands")]
)
def test_every_block_runs(tmp_path, version):
    folder = tmp_path / "project"
    folder.mkdir()
    variables = environment(tmp_path)
    run_all([(language, version(text)) for language, text in blocks(PAGE)], folder, variables)


def test_it_is_short():
    assert len(README.splitlines()) <= 150


def test_what_it_links_to_is_there():
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", BLOCK.sub("", README))
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_no_block_is_written_another_way():
    assert not re.search(r"^    \S", README, re.MULTILINE)
    assert README.count("```") == 2 * len(BLOCK.findall(README))


@pytest.mark.parametrize("page", EXPERIMENTS, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_the_results_that_a_page_names_are_there(page):
    for name in RESULT.findall(page.read_text()):
        places = (page.parent, page.parent / "results", ROOT)
        assert any((place / name).is_file() for place in places), name


@pytest.mark.parametrize("page", READMES, ids=lambda page: page.parent.name)
def test_the_page_of_an_experiment_is_short_and_its_links_lead_somewhere(page):
    assert len(page.read_text().splitlines()) <= 60
    for link in re.findall(r"\]\(([^):]+)\)", page.read_text()):
        assert (page.parent / link).is_file(), link


def test_the_targets_of_make_are_there():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
