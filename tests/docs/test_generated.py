"""Pages that are written from the code: nothing that the code has is left out."""

from __future__ import annotations

import re

import pytest

from docs import generated
from tests.pages import ROOT
from tilewright.measure.tables.schema import HEAD, MEANING, metadata

PACKAGES = ("spaces", "measure", "costmodel", "scheduler")
READ = re.compile(r"environ\.get\(\s*\"(\w+)\"|environ\[\"(\w+)\"\](?! =)")
PAGE = "\n".join(generated.tables())


@pytest.mark.parametrize("table", metadata.tables.values(), ids=str)
def test_each_table_and_column_says_what_it_means(table):
    assert f"## {table.name}\n\n{table.info[MEANING]}" in PAGE
    own = PAGE.partition(f"## {table.name}\n")[2].partition("\n## ")[0]
    for column in table.columns:
        assert column.doc
        assert f"| `{column.name}` |" in own
        assert column.doc in own


def test_each_migration_says_what_it_does():
    rows = [line.split(" | ") for line in PAGE.partition("## Migrations")[2].splitlines()]
    numbered = {row[0].strip("| `"): row[1] for row in rows if row[0].startswith("| `")}
    assert list(numbered) == [f"{n:04}" for n in range(1, int(HEAD) + 1)]
    assert all(said.rstrip(" |").endswith(".") for said in numbered.values())


def test_each_variable_that_is_read_is_on_the_page_of_the_environment():
    page = (ROOT / "docs/reference/environment.md").read_text()
    texts = [path.read_text() for name in PACKAGES for path in (ROOT / name).rglob("*.py")]
    read = {one or other for text in texts for one, other in READ.findall(text)}
    assert "CC" in read
    assert {name for name in read if f"`{name}`" not in page} == set()
