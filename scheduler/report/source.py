"""Read the source of the best kernel for a page: its statements in words, and how the runner-up
differs."""

from __future__ import annotations

import json
from difflib import unified_diff
from typing import TYPE_CHECKING, Any

from tilewright.scheduler.cli.text import plain
from tilewright.scheduler.report.outline import outline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tilewright.scheduler.report.material import Material
    from tilewright.spaces.kernel import Kernel
    from tilewright.spaces.schedule import Schedule

MOST_LINES = 400  # lines of a difference of sources
MISSING = "-"  # stands for a decision that a template does not have


def source_of(material: Material) -> dict[str, Any]:
    """Return the source of the best with what each line is, and how the runner-up's decisions and
    source differ; nothing where today's templates have no such schedule."""
    found: dict[str, Any] = {"source": "", "language": "", "lines": "", "differs": []}
    found["difference"] = ""
    if not material.kernels:
        return found
    (schedule, kernel), *others = material.kernels
    found["source"] = plain_lines(kernel.source.body)
    found["language"] = plain(kernel.source.language)
    found["lines"] = _lines(kernel)
    if others:
        runner_up, other = others[0]
        found["differs"] = [tuple(map(plain, each)) for each in differing(schedule, runner_up)]
        before, after = (each.source.body.splitlines() for each in (other, kernel))
        changed = unified_diff(before, after, "runner-up", "best", lineterm="", n=2)
        found["difference"] = plain_lines("\n".join(list(changed)[:MOST_LINES]))
    return found


def differing(best: Schedule, other: Schedule) -> Iterator[tuple[str, str, str]]:
    """Yield the decisions that two schedules make otherwise: name, and both values."""
    sides = [{"template": each.template, **each.values} for each in (best, other)]
    for name in dict.fromkeys((*sides[0], *sides[1])):
        one, two = (str(side.get(name, MISSING)) for side in sides)
        if one != two:
            yield name, one, two


def plain_lines(text: str) -> str:
    """Return several lines that are safe to show, whoever wrote them."""
    return "\n".join(plain(line.replace("\t", "    ")) for line in text.splitlines())


def _lines(kernel: Kernel) -> str:
    """Return for each line the one that opens what it is in, from 0, and what it is in words."""
    lines = outline(kernel.source.body, kernel.call.entry)
    return json.dumps([[each.parent, plain(each.words)] for each in lines], separators=(",", ":"))
