"""A built site, read as a visitor reads it: pages, the links in them, and what is linked to."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit


@dataclass
class Page(HTMLParser):
    """One page: the links of its article, in order, all links, and the ids that it has."""

    article: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()
        self._within = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self._within += tag == "article"
        self.ids.add(values.get("id") or "")
        if tag == "a" and (link := values.get("href")):
            self.links.append(link)
            if self._within:
                self.article.append(link)

    def handle_endtag(self, tag: str) -> None:
        self._within -= tag == "article"


@dataclass(frozen=True)
class Site:
    """The pages of a folder of HTML."""

    folder: Path

    @property
    def pages(self) -> list[str]:
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*.html"))

    @cache  # noqa: B019  (a test session has one site)
    def page(self, name: str) -> Page:
        page = Page()
        page.feed((self.folder / name).read_text())
        return page

    def target(self, name: str, link: str) -> tuple[str, str] | None:
        """The file and the id that a link of a page leads to; None if that is elsewhere."""
        if urlsplit(link).scheme or link.startswith("//"):
            return None
        path, fragment = urldefrag(link)
        file = (self.folder / name).parent / unquote(path) if path else self.folder / name
        return str(file.resolve().relative_to(self.folder.resolve())), unquote(fragment)

    def leads(self, name: str, link: str) -> bool:
        """Tell whether a link leads to a file and a place that are there, or elsewhere."""
        target = self.target(name, link)
        if target is None:
            return True
        file, place = target
        return (self.folder / file).is_file() and (not place or place in self.page(file).ids)

    def clicks(self, start: str) -> dict[str, int]:
        """How many links of articles lead from one page to each other."""
        known, border = {start: 0}, [start]
        while border:
            name = border.pop(0)
            for link in self.page(name).article if name.endswith(".html") else ():
                target = self.target(name, link)
                if target is not None and target[0] not in known:
                    known[target[0]] = known[name] + 1
                    border.append(target[0])
        return known
