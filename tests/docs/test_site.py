"""The built site: each link leads somewhere, and each task's page is two clicks from the index."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

import pytest

from tests.docs.site import Site
from tests.pages import ROOT, blocks

TASKS = ROOT / "docs/tasks.md"
SECTIONS = re.split(r"^## ", TASKS.read_text(), flags=re.MULTILINE)[1:]
WRITTEN = sorted(
    path
    for folder in (".", "changelog.d", "docs", "examples", "experiments")
    for path in (ROOT / folder).glob("*.md" if folder == "." else "**/*.md")
    if "_build" not in path.parts
)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def test_the_site_builds_without_a_warning_and_has_the_generated_pages(site: Site):
    assert "reference/command-line.html" in site.pages
    assert "measurements" in (site.folder / "reference/database.html").read_text()


def test_every_link_within_the_site_leads_to_a_page_and_a_place_in_it(site: Site):
    links = [(name, link) for name in site.pages for link in site.page(name).links]
    assert [(name, link) for name, link in links if not site.leads(name, link)] == []


def test_every_link_out_of_the_site_is_an_address(site: Site):
    links = {link for name in site.pages for link in site.page(name).links}
    outside = [urlsplit(link) for link in links if urlsplit(link).scheme]
    assert outside
    assert [parts for parts in outside if not is_address(parts)] == []


def is_address(parts: SplitResult) -> bool:
    """Tell whether this is a page or a mailbox at a host with a domain."""
    host = parts.hostname or parts.path.partition("@")[2]
    return parts.scheme in ("https", "mailto") and bool(re.fullmatch(r"[\w-]+(\.[\w-]+)+", host))


@pytest.mark.parametrize("page", WRITTEN, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_a_file_leads_to_one_or_is_an_address(page):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    links = {link: urlsplit(link) for link in LINK.findall(text)}
    assert all(is_address(parts) for parts in links.values() if parts.scheme)
    paths = [parts.path for parts in links.values() if not parts.scheme]
    dead = [path for path in paths if path and not (page.parent / path).exists()]
    assert [link for link in dead if not generated(page.parent / link)] == []


def generated(path) -> bool:
    return path.suffix == ".md" and path.stem in ("functions", "operators", "command-line")


def test_there_are_ten_tasks_and_all_but_the_installation_run():
    assert len(SECTIONS) == 10
    assert len(blocks(TASKS)) == 9


@pytest.mark.parametrize("section", SECTIONS, ids=lambda text: text.splitlines()[0])
def test_a_task_has_commands_and_a_page_two_clicks_from_the_index(site: Site, section):
    assert "```sh\n" in section
    [page] = LINK.findall(section)
    name = page.replace(".md", ".html")
    assert name in site.page("tasks.html").article
    assert site.clicks("index.html")[name] <= 2


def test_every_page_is_two_clicks_from_the_index(site: Site):
    apart = site.clicks("index.html")
    own = [name for name in site.pages if name not in ("genindex.html", "search.html")]
    assert {name: apart.get(name) for name in own if apart.get(name, 9) > 2} == {}
