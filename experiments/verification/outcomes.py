"""Outcomes of schedules, by case and template, as JSON values and as a table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from tilewright.scheduler.verification import Verdict

JUDGED = ("right", "wrong")
"""Outcomes that say something of a kernel; one that is refused never ran to its end."""
OUTCOMES = (*JUDGED, "refused")


def count(outcomes: dict[str, Any], case: str, template: str, verdict: Verdict) -> None:
    """Add a verdict; of a wrong schedule all that repeats it, of a refused one why."""
    row = outcomes.setdefault(case, {}).setdefault(template, {})
    row[verdict.outcome] = row.get(verdict.outcome, 0) + 1
    if verdict.outcome == "wrong":
        told = {"error": f"{verdict.error_kind}: {verdict.error_text[:400]}"}
        row.setdefault("schedules", []).append(told | {"schedule": verdict.schedule.to_json()})
    elif verdict.outcome == "refused":
        reasons = row.setdefault("reasons", {})
        why = re.sub(r"\d+", "N", f"{verdict.error_kind}: {verdict.error_text[:90]}")
        reasons[why] = reasons.get(why, 0) + 1


def seen(outcomes: Mapping[str, Any], case: str, template: str, of: Collection[str]) -> int:
    """Return how many schedules had such an outcome."""
    row = outcomes.get(case, {}).get(template, {})
    return sum(row.get(outcome, 0) for outcome in of)


def totals(outcomes: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Return, by template, how many schedules had each outcome, and of how many cases."""
    found: dict[str, Counter[str]] = {}
    for templates in outcomes.values():
        for template, row in templates.items():
            counted = {o: row[o] for o in OUTCOMES if o in row}
            found.setdefault(template, Counter()).update(counted | {"cases": 1})
    return {template: dict(counts) for template, counts in sorted(found.items())}


def table(results: Mapping[str, Any]) -> str:
    """Return a Markdown table with a row for each template."""
    lines = [
        "| template | workloads | right | wrong | refused |",
        "| --- | --- | --- | --- | --- |",
    ]
    for template, counts in totals(results["cases"]).items():
        numbers = (counts.get(word, 0) for word in ("cases", *OUTCOMES))
        lines.append(f"| {template} | {' | '.join(map(str, numbers))} |")
    return "\n".join(lines) + "\n"
