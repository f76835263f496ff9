"""Workloads and targets from their descriptions in records, each description read once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tilewright.measure.records.fields import Fields
from tilewright.spaces.target import target_from_json

if TYPE_CHECKING:
    from tilewright.spaces.workloads.workload import Workload

Thing = TypeVar("Thing")


class _Reader(Generic[Thing]):
    """Reads descriptions of one kind, and remembers at most ``most`` of them."""

    def __init__(self, name: str, read: Callable[[Mapping[str, Any]], Thing], most: int) -> None:
        self._name, self._read, self._most = name, read, most
        self._known: dict[str, Thing] = {}

    def __call__(self, fields: Fields) -> Thing:
        data = fields.take(self._name)
        text = repr(data)  # tells 1, 1.0 and True apart, and takes a fraction of JSON's time
        found = self._known.get(text)
        if found is None:
            found = self._read(Fields({self._name: data}).description(self._name))
            if len(self._known) >= self._most:
                self._known.clear()
            self._known[text] = found
        return found


def _workload(description: Mapping[str, Any]) -> Workload:
    from tilewright.spaces.operators import (
        workload_from_json,  # with NumPy, which summaries do without
    )

    return workload_from_json(description)


described_workload = _Reader("workload", _workload, 1024)
"""The workload in the field ``workload``; :class:`InputError` if malformed."""

described_target = _Reader("target", target_from_json, 64)
"""The target in the field ``target``; :class:`InputError` if malformed."""
