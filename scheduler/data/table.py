"""The measurements of a database as a table: one row an attempt, typed columns."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.costmodel.features import feature_matrix, features
from tilewright.scheduler.data.columns import (
    FEATURE,
    OF_GROUPS,
    OF_RECORDS,
    Column,
    cell,
    decision_column,
    feature_column,
    parameter_column,
)
from tilewright.scheduler.data.selection import EVERYTHING, Selection
from tilewright.spaces.errors import InputError
from tilewright.spaces.registry import space_for
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from tilewright.measure.database import Database
    from tilewright.measure.records.record import Record

PARTS = ("train", "test")
TEST_SHARE = 0.2  # share of the workloads that are held out

Chunk = Mapping[str, Sequence[Any]]
"""Values of every column, by its name, for the rows of one workload on one target. None is
missing; others are of the column's kind."""


class Table:
    """Every attempt of a database, or of one workload or target, or those of a selection.

    ``columns`` are those that all rows together need: what every record tells, the parameters of
    the workloads, and the decisions of the templates; with ``features`` also the group, its split,
    the score and the features of cost models (missing where today's spaces cannot make the
    schedule). Attempts that come while it is read are not in it.
    """

    def __init__(
        self,
        database: Database,
        workload: Workload | None = None,
        target: Target | None = None,
        features: bool = False,
        selection: Selection = EVERYTHING,
    ) -> None:
        self._database, self._selection = database, selection
        self._features: list[str] = []
        self._last = 0
        self._pairs = [
            (known, there)
            for known, there in selection.pairs(database)
            if (workload is None or workload.key == known.key) and target in (None, there)
        ]
        self._tested = _tested({workload.key for workload, _ in self._pairs})
        self._with_groups = features
        self.columns = self._find_columns()

    def chunks(self, part: str | None = None) -> Iterator[Chunk]:
        """Yield the rows, workload by workload and target by target, oldest first; of workloads of
        one ``part`` only, ``train`` or ``test``, if it is named."""
        for workload, target in self._pairs:
            if part not in (None, self._part(workload)):
                continue
            records = [r for r in self._records(workload, target) if (r.id or 0) <= self._last]
            if records:
                yield self._chunk(workload, target, records)

    def _records(self, workload: Workload, target: Target) -> Iterator[Record]:
        return filter(self._selection.takes, self._database.records(workload, target))

    def _find_columns(self) -> list[Column]:
        parameters: dict[str, set[type]] = {}
        decisions: dict[tuple[str, str], set[type]] = {}
        for workload, target in self._pairs:
            known = []
            for record in self._records(workload, target):
                self._last = max(self._last, record.id or 0)
                for name, value in record.schedule.decisions:
                    kinds = decisions.setdefault((record.schedule.template, name), set())
                    kinds.add(type(value))
                known.append(record)
            for parameter, given in workload.parameters if known else ():
                parameters.setdefault(parameter, set()).add(type(given))
            if self._with_groups:
                self._find_features(workload, target, known)
        self._features = list(dict.fromkeys(self._features))
        return [
            *OF_RECORDS,
            *(OF_GROUPS if self._with_groups else ()),
            *(parameter_column(name, kinds) for name, kinds in parameters.items()),
            *(decision_column(*name, kinds) for name, kinds in decisions.items()),
            *(feature_column(name) for name in self._features),
        ]

    def _find_features(self, workload: Workload, target: Target, records: Sequence[Record]) -> None:
        space, rows = _placed(workload, target, records)
        if space is not None and rows:
            self._features += features(space, next(iter(rows.values()))[None])

    def _chunk(self, workload: Workload, target: Target, records: Sequence[Record]) -> Chunk:
        found: dict[str, Sequence[Any]] = {
            column.name: [cell(column.kind, column.of(record)) for record in records]
            for column in OF_RECORDS
        }
        if self._with_groups:
            found |= self._of_group(workload, target, records)
        parameters = dict(workload.parameters)
        for column in self.columns:
            if column.name in found:
                continue
            owner, _, name = column.name.partition(".")
            if owner == "workload":
                value = cell(column.kind, parameters.get(name))
                found[column.name] = [value] * len(records)
            else:
                found[column.name] = [
                    cell(column.kind, r.schedule.values.get(name))
                    if r.schedule.template == owner
                    else None
                    for r in records
                ]
        return found

    def _part(self, workload: Workload) -> str:
        return "test" if workload.key in self._tested else "train"

    def _of_group(
        self, workload: Workload, target: Target, records: Sequence[Record]
    ) -> dict[str, Sequence[Any]]:
        part = self._part(workload)
        found: dict[str, Sequence[Any]] = {
            "group": [f"{workload.digest}:{target.fingerprint[:16]}"] * len(records),
            "score": _scores(records),
            "split": [part] * len(records),
        }
        matrix = np.full((len(records), len(self._features)), np.nan)
        space, rows = _placed(workload, target, records)
        if space is not None and rows:
            matrix[list(rows)] = feature_matrix(
                space, np.stack(list(rows.values())), self._features
            )
        for name, values in zip(self._features, matrix.T.tolist(), strict=True):
            found[FEATURE + name] = [None if value != value else value for value in values]
        return found


def in_order(chunks: Iterable[Chunk], column: str, count: int | None) -> Iterator[Chunk]:
    """Yield all rows in one chunk by the values of ``column``, the least first and those without
    one last; at most ``count`` of them."""
    rows: dict[str, list[Any]] = {}
    for chunk in chunks:
        for name, values in chunk.items():
            rows.setdefault(name, []).extend(values)
    keys = rows.get(column, [])
    known = [place for place, key in enumerate(keys) if key is not None]
    missing = [place for place, key in enumerate(keys) if key is None]
    order = [*sorted(known, key=keys.__getitem__), *missing][:count]
    if order:
        yield {name: [values[place] for place in order] for name, values in rows.items()}


def _tested(workloads: Collection[str]) -> set[str]:
    """Return the workloads that are kept for testing: always the same ones of the same, none of
    one."""
    if len(workloads) < 2:
        return set()
    drawn = sorted(workloads, key=lambda key: hashlib.sha256(key.encode()).digest())
    return set(drawn[: max(1, round(TEST_SHARE * len(drawn)))])


def _scores(records: Sequence[Record]) -> list[float | None]:
    """Return least latency over each one's, 0 for failures; none where the machine failed or a
    later run could not confirm it."""
    tells = [not (record.measurement.lost or record.doubted) for record in records]
    latency = [record.measurement.score for record in records]
    known = [seconds for seconds, ok in zip(latency, tells, strict=True) if ok and seconds]
    best = min(known, default=0.0)
    return [
        None if not ok else best / seconds if seconds else 0.0
        for seconds, ok in zip(latency, tells, strict=True)
    ]


def _placed(
    workload: Workload, target: Target, records: Sequence[Record]
) -> tuple[Space | None, dict[int, np.ndarray]]:
    """Return the space, if there is one, and its rows by the places of those records that it can
    make."""
    try:
        space = space_for(workload, target)
    except InputError:
        return None, {}
    known = [i for i, each in enumerate(records) if each.template_version in space.versions]
    rows = space.placed([records[i].schedule for i in known])
    return space, {i: row for i, row in zip(known, rows, strict=True) if row is not None}
