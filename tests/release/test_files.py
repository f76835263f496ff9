"""Files beside the code that hosts and readers parse: citation, forms, workflow, changelog."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.pages import ROOT
from tilewright.spaces.version import VERSION

yaml = pytest.importorskip("yaml", reason="needs the extra docs")

FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
INPUTS = {"checkboxes", "dropdown", "input", "textarea"}
KINDS = {"added", "changed", "removed", "fixed", "security"}
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
METADATA = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_citation_has_what_its_format_asks_for_and_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert (citation["cff-version"], citation["type"]) == ("1.2.0", "software")
    assert citation["version"] == VERSION
    assert citation["license"] == METADATA["license"]
    assert citation["authors"] == METADATA["authors"]
    assert all(isinstance(value, str | list) for value in citation.values())


def test_there_is_a_form_for_bugs_wrong_kernels_and_features():
    assert {path.stem for path in FORMS} == {"bug", "config", "feature", "wrong-kernel"}


@pytest.mark.parametrize(
    "path", [path for path in FORMS if path.stem != "config"], ids=lambda path: path.stem
)
def test_a_form_is_one(path):
    form = yaml.safe_load(path.read_text())
    assert form["name"]
    assert form["description"]
    asked = [part for part in form["body"] if part["type"] in INPUTS]
    assert len(asked) >= 3
    assert len({part["id"] for part in asked}) == len(asked)
    for part in form["body"]:
        assert part["type"] in {*INPUTS, "markdown"}
        assert part["attributes"]["label" if part in asked else "value"]


def test_the_workflow_runs_what_developers_run():
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    commands = [step.get("run") for job in workflow["jobs"].values() for step in job["steps"]]
    assert ".ci/run" in commands
    assert workflow["permissions"] == {"contents": "read"}


def test_the_workflow_runs_every_python_that_metadata_names():
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    named = [word.rpartition(" ")[2] for word in METADATA["classifiers"] if "Python :: 3." in word]
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == named
    assert METADATA["requires-python"] == f">={named[0]}"


def test_the_changelog_stays_small():
    first, *sections = re.split(r"^## ", CHANGELOG, flags=re.MULTILINE)
    assert "changelog.d/" in first
    assert sections[0].split()[0] == VERSION
    for section in sections:
        assert len(section.splitlines()) <= 60
    sentences = re.split(r"(?<=[.:;])\s", CHANGELOG)
    assert [text for text in sentences if len(text.split()) > 35] == []


def test_fragments_have_a_kind():
    names = {path.name for path in (ROOT / "changelog.d").iterdir()} - {"README.md"}
    kinds = "|".join(KINDS)
    assert all(re.fullmatch(rf"[\w-]+\.({kinds})\.md", name) for name in names)


def test_metadata_says_who_and_for_what():
    assert METADATA["authors"] == METADATA["maintainers"]
    assert len(METADATA["classifiers"]) == len(set(METADATA["classifiers"]))
    assert "Typing :: Typed" in METADATA["classifiers"]
