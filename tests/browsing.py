"""Chromium, driven by Playwright, for tests of pages. CI has both, others may lack them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
HERE = ("", "127.0.0.1", "localhost")
"""Hosts that a page may ask: a file has none."""


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser, as long as the block lasts; skipped where it is missing, but not in CI."""
    if not BROWSER and not os.environ.get("CI"):
        pytest.skip("needs Chromium")
    if not os.environ.get("CI"):
        pytest.importorskip("playwright", reason="needs the extra dev")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        alone = ["--no-sandbox"] if os.geteuid() == 0 else []
        made = playwright.chromium.launch(executable_path=BROWSER, args=[*alone, "--disable-gpu"])
        yield made
        made.close()


@dataclass
class Visit:
    """A page in a window, what its console said, and what it asked of whom."""

    page: Any
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    @property
    def asked_elsewhere(self) -> list[str]:
        """Requests that leave this machine."""
        own = ("file", "http", "data", "blob")
        parts = [(url, urlsplit(url)) for url in self.asked]
        return [url for url, at in parts if at.scheme not in own or (at.hostname or "") not in HERE]

    @property
    def overflow(self) -> int:
        """Pixels by which the page is wider than its window."""
        return self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )

    def points(self) -> dict[str, tuple[int, int]]:
        """The points of each figure of the first workload: told, and drawn."""
        found = self.page.evaluate(
            """() => [...document.querySelector("section.workload").querySelectorAll(
                "figure[data-figure]")].map((figure) => {
                const svg = figure.querySelector("svg");
                const paths = [...svg.querySelectorAll("path:is(.points, .trials):not(.key)")];
                const count = (path) => (path.getAttribute("d").match(/M/g) || []).length;
                const drawn = paths.map(count).reduce((sum, each) => sum + each, 0);
                return [figure.dataset.figure, Number(svg.dataset.points), drawn];
            })"""
        )
        return {name: (told, drawn) for name, told, drawn in found}

    def faults(self) -> list[str]:
        """Serious faults of accessibility, with what has them."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page).response["violations"]
        return [
            f"{fault['id']}: {fault['help']}: {node['html'][:200]}"
            for fault in found
            if fault["impact"] in ("serious", "critical")
            for node in fault["nodes"][:3]
        ]


@contextmanager
def opened(browser: Any, url: str, width: int = 1600, scheme: str = "light") -> Iterator[Visit]:
    """A window of so many pixels that has opened a page."""
    context = browser.new_context(
        viewport={"width": width, "height": 1000}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    visit = Visit(page)
    page.on("console", lambda message: visit.said.append(message.text))
    page.on("pageerror", lambda error: visit.said.append(str(error)))
    page.on("request", lambda request: visit.asked.append(request.url))
    page.goto(url)
    try:
        yield visit
    finally:
        context.close()
