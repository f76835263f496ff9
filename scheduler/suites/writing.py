"""Suites as the text of a file, without comments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from tilewright.scheduler.suites.suite import Member, Suite
from tilewright.spaces.workloads.workload import Workload


def text_of(suite: Suite) -> str:
    """Return the suite in TOML."""
    blocks = ("\n".join(member_lines(member)) for member in suite.members)
    return "\n\n".join([f"title = {json.dumps(suite.title)}", *blocks]) + "\n"


def member_lines(member: Member) -> Iterator[str]:
    """Yield the lines of one workload."""
    yield "[[workloads]]"
    if member.name:
        yield f"name = {json.dumps(member.name)}"
    yield f"operator = {_operator(member.workload)}"
    if member.sections or member.weight != 1:
        yield f"weight = {_weight(member.weight, member.sections)}"


def _operator(workload: Workload) -> str:
    """Return a program by its lines, any other workload by its words."""
    if not workload.matmul:
        return f'"""\n{workload.program.text}\n"""'
    return json.dumps(str(workload))


def _weight(weight: float, sections: Mapping[str, float]) -> str:
    """Return the weight, or that in each section."""
    if not sections:
        return f"{weight:g}"
    pairs = (f"{json.dumps(name)} = {share:g}" for name, share in sections.items())
    return f"{{ {', '.join(pairs)} }}"
