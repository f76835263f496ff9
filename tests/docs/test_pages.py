"""Pages of the documentation: their blocks run, their sentences are short."""

from __future__ import annotations

import re

import pytest

from tests.covering import covering
from tests.pages import BLOCK, LANGUAGES, ROOT, blocks, environment, quickly, run_all, used
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program

DOCS = ROOT / "docs"
GENERATED = {"functions.md", "operators.md", "command-line.md"}
PAGES = sorted(
    page for page in DOCS.rglob("*.md") if "_build" not in page.parts and page.name not in GENERATED
)
LONGEST = 35
"""Words of a sentence."""


def name(page) -> str:
    return str(page.relative_to(DOCS))


def aspects(page) -> set[str]:
    return used("\n".join(text for language, text in blocks(page) if language in LANGUAGES))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", covering(filter(blocks, PAGES), aspects), ids=name)
def test_every_block_runs(page, tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    variables = environment(tmp_path, blocks(page))
    run_all([(language, quickly(text)) for language, text in blocks(page)], folder, variables)


def programs(kind: str) -> list[str]:
    page = DOCS / "reference/language.md"
    return [text for language, text in blocks(page) if language == kind]


@pytest.mark.parametrize("text", programs("accepted"))
def test_what_is_called_accepted_is(text):
    assert program(text).stages


@pytest.mark.parametrize("text", programs("refused"))
def test_what_is_called_refused_is_and_so_is_said_why(text):
    written, _, said = text.rpartition("\n-> ")
    with pytest.raises(InputError, match=re.escape(said)):
        program(written)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.name)
def test_sentences_are_short(page):
    text = re.sub(r"^\s*(\||#|:|-->).*$", "", BLOCK.sub("", page.read_text()), flags=re.MULTILINE)
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    sentences = re.split(r"(?<=[.!?:;])\s|\n\s*\n|\n\s*(?:[-*]|\d+\.)\s", text)
    long = [s for s in sentences if len(s.split()) > LONGEST]
    assert not long
