"""The data card of a table: a page of Markdown that says what it is and where it is from."""

from __future__ import annotations

import platform
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.costmodel.features import FEATURE_VERSION
from tilewright.scheduler.data.columns import Column
from tilewright.scheduler.data.table import Chunk
from tilewright.spaces.version import VERSION

COUNTED = ("device", "operator", "status", "origin", "toolchain", "split")


@dataclass
class Census:
    """Counts of a table's rows, workloads, targets and values, made while it is written."""

    rows: int = 0
    workloads: set[str] = field(default_factory=set)
    targets: set[str] = field(default_factory=set)
    values: dict[str, Counter[str]] = field(default_factory=dict)
    first: float | None = None
    last: float | None = None

    def counted(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Yield ``chunks``, each counted as it passes."""
        for chunk in chunks:
            self._count(chunk)
            yield chunk

    def _count(self, chunk: Chunk) -> None:
        self.rows += len(chunk["key"])
        self.workloads.update(chunk["workload"])
        self.targets.update(chunk["target"])
        for name in COUNTED:
            if name in chunk:
                values = ("(not said)" if value is None else value for value in chunk[name])
                self.values.setdefault(name, Counter()).update(values)
        times = [at for at in chunk["started_at"] if at]
        if times:
            self.first = min([*times, self.first or times[0]])
            self.last = max([*times, self.last or times[0]])


def data_card(
    name: str, source: str, columns: Sequence[Column], census: Census, versions: Mapping[str, str]
) -> str:
    """Return the card of the file called ``name``, made from a database called ``source``."""
    featured = any(column.name == "split" for column in columns)
    parts = [
        f"# {_plain(name)}: measured schedules of kernels",
        f"{census.rows} attempts to run schedules of {len(census.workloads)} workloads on "
        f"{len(census.targets)} targets.",
        _WHAT,
        f"## Where it is from\n\nThe tuning database {_plain(source)}, exported "
        f"{_date(time.time())}. Measured between {_date(census.first)} and {_date(census.last)}.",
        *(_counts(kind, census.values[kind]) for kind in COUNTED if kind in census.values),
        _BIAS,
        *([_SPLIT] if featured else []),
        _columns(columns),
        _versions(versions, featured),
        "## License\n\n(to be named by whoever publishes this file)",
    ]
    return "\n\n".join(parts) + "\n"


_WHAT = """\
## What it is

One row is one attempt to build a schedule, verify it against a float64 reference and time it. A
schedule is a choice of decisions; columns of decisions of other templates than its own are empty.
Failures are rows, too. A schedule that was measured more than once has a row for each time. Raw
samples, error texts and descriptions of targets are in `tilewright export --format jsonl` alone.
In CSV what is missing is empty, and a text that begins with `=`, `+`, `-`, `@`, a tab or a carriage
return has a single quote before it, so that no spreadsheet takes it for a formula."""

_BIAS = """\
Only rows whose origin is `random` were drawn without regard to how fast they are: a search tries
mostly what looked promising."""

_SPLIT = """\
## Split and label

`split` keeps a fifth of the workloads for testing, by the order of the SHA-256 of their names, so
that none is in both parts; a lone workload is all `train`. `score` is the label of cost models."""


def _counts(kind: str, counter: Counter[str]) -> str:
    lines = [f"| {kind} | rows |", "| --- | ---: |"]
    lines += [f"| {_plain(value)} | {count} |" for value, count in counter.most_common(50)]
    return "\n".join(lines)


def _columns(columns: Sequence[Column]) -> str:
    lines = ["## Columns", "", "| column | type | unit | meaning |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {_plain(c.name)} | {c.kind} | {_plain(c.unit)} | {_plain(c.meaning)} |" for c in columns
    ]
    return "\n".join(lines)


def _versions(versions: Mapping[str, str], featured: bool) -> str:
    known = {"tilewright": VERSION, "Python": platform.python_version(), **versions}
    if featured:
        known["features"] = str(FEATURE_VERSION)
    return "## Versions\n\n" + "\n".join(f"- {name} {version}" for name, version in known.items())


def _date(at: float | None) -> str:
    try:
        return "(not known)" if at is None else time.strftime("%Y-%m-%d", time.gmtime(at))
    except (OverflowError, ValueError, OSError):
        return "(not known)"


def _plain(text: str) -> str:
    """Return ``text`` as it stands, whatever it would mean in Markdown."""
    return "".join(f"\\{c}" if c in r"\`*_{}[]<>#|" else c for c in text)
