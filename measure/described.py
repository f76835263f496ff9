"""Workloads and targets from their descriptions in records, each description read once."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from measure.fields import Fields
from spaces.canonical import canonical_json
from spaces.operators import workload_from_json
from spaces.target import Target, target_from_json
from spaces.workload import Workload


def described_workload(fields: Fields) -> Workload:
    """The workload in the field ``workload``; :class:`InputError` if malformed."""
    return _workload(canonical_json(fields.mapping("workload")))


def described_target(fields: Fields) -> Target:
    """The target in the field ``target``; :class:`InputError` if malformed."""
    return _target(canonical_json(fields.mapping("target")))


@lru_cache(maxsize=1024)
def _workload(text: str) -> Workload:
    return workload_from_json(_checked("workload", text))


@lru_cache(maxsize=64)
def _target(text: str) -> Target:
    return target_from_json(_checked("target", text))


def _checked(name: str, text: str) -> dict[str, Any]:
    return Fields({name: json.loads(text)}).description(name)
