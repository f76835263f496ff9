"""Docstrings begin with a subject or a verb: see ``tests/docstrings.py`` for what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docstrings import Docstring, docstrings, modules

ROOT = Path(__file__).parents[1]
PACKAGES = ("costmodel", "examples", "experiments", "measure", "scheduler", "spaces")
OPERATORS = ROOT / "spaces/named"
SHARE = 0.02
"""The largest share of all docstrings that may be faulty, private ones included."""


@pytest.fixture(scope="module")
def found() -> dict[str, list[Docstring]]:
    return {
        str(path.relative_to(ROOT)): list(
            docstrings(path.read_text(encoding="utf-8"), path.is_relative_to(OPERATORS))
        )
        for path in modules(ROOT, PACKAGES)
    }


def test_public_docstrings_begin_with_a_subject_or_a_verb(found) -> None:
    faulty = [
        f"{path}:{each.line}: {each.text}"
        for path, own in found.items()
        for each in own
        if each.is_public and each.is_faulty
    ]
    assert not faulty, "\n".join(faulty)


def test_few_private_docstrings_do_not(found) -> None:
    every = [(path, each) for path, own in found.items() for each in own]
    faulty = [f"{path}:{each.line}: {each.text}" for path, each in every if each.is_faulty]
    assert len(faulty) <= SHARE * len(every), f"{len(faulty)} of {len(every)}:\n" + "\n".join(
        faulty
    )


@pytest.mark.parametrize(
    "text",
    [
        "Of so many sums.",
        "What it reads.",
        "Loaded by threads.",
        "The rows that are read.",
        "``x`` rounded up.",
        "Rows of a tile.",
        "At most so many.",
        "True if it holds.",
        "torch's own operator.",
    ],
)
def test_a_function_without_a_verb_is_found(text: str) -> None:
    nested = f'class A:\n    """An a."""\n    async def b(self):\n        """{text}"""\n'
    assert [each.line for each in docstrings(nested) if each.is_faulty] == [4]


@pytest.mark.parametrize("word", ["Of", "What", "That", "Those", "Whether", "Which", "Where"])
def test_relative_words_are_found_wherever_they_stand(word: str) -> None:
    for source in (f'"""{word} it is."""\n', f'X = 1\n"""{word} it is."""\n'):
        assert [each.is_faulty for each in docstrings(source)] == [True]


@pytest.mark.parametrize(
    "text",
    ["Return the rows.", "Offer what is asked for.", "A kernel is built once.", "Within x, y."],
)
def test_verbs_and_sentences_are_accepted(text: str) -> None:
    assert not any(each.is_faulty for each in docstrings(f'def f():\n    """{text}"""\n'))


def test_things_are_described_by_nouns() -> None:
    source = (
        '"""Rows of a tile."""\nclass A:\n    """The rows."""\n    b = 1\n    """Ways to go."""\n'
    )
    source += '    @property\n    def c(self):\n        """The c."""\n'
    assert [(each.name, each.is_faulty) for each in docstrings(source)] == [
        ("", False), ("A", False), ("A.b", False), ("A.c", False)
    ]  # fmt: skip
