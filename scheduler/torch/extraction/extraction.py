"""The workloads of a model: the regions that the backend hands to kernels, to be tuned beforehand.

A model is captured for each number of rows that it will serve. Equal regions are one workload,
whose weight is the number of their places. Phases of serving and numbers of shards are sections.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from tilewright.scheduler.garbage import uncollected
from tilewright.scheduler.suites.suite import Member, Suite
from tilewright.scheduler.torch.backend.weights import with_packed_weight
from tilewright.scheduler.torch.extraction.blame import shortened
from tilewright.scheduler.torch.extraction.calls import Call, Model, Numbers, Rows, calls, title_of
from tilewright.scheduler.torch.extraction.capture import Captured, captured_parts
from tilewright.scheduler.torch.extraction.freezing import ways_of
from tilewright.scheduler.torch.regions.partition import partition
from tilewright.scheduler.torch.regions.places import place_of
from tilewright.scheduler.torch.regions.region import Region
from tilewright.scheduler.torch.regions.work import bytes_of, flops_of
from tilewright.scheduler.torch.translation.nodes import name_of
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.target import Target, as_target
from tilewright.spaces.workloads.workload import Workload


@dataclass(frozen=True)
class Work:
    """Floating-point operations, and bytes that must move, each call weighed as it counts."""

    flops: float = 0
    bytes: float = 0

    def __add__(self, other: Work) -> Work:
        return Work(self.flops + other.flops, self.bytes + other.bytes)

    def __mul__(self, weight: float) -> Work:
        return Work(self.flops * weight, self.bytes * weight)


@dataclass
class Extracted:
    """A workload, and where it occurs: ``places`` counts the modules by phase and path;
    ``sections`` has its weight and ``work`` its work in each section of the suite."""

    workload: Workload
    places: Counter[str] = field(default_factory=Counter)
    sections: dict[str, float] = field(default_factory=dict)
    work: dict[str, Work] = field(default_factory=dict)

    @property
    def weight(self) -> float:
        """The number of times that it occurs, calls weighed as they count."""
        return sum(self.sections.values())

    @property
    def name(self) -> str:
        """The first place, and how many more there are."""
        first, others = next(iter(self.places)), sum(self.places.values()) - 1
        return f"{first} and {others} more" if others else first

    def member(self) -> Member:
        """Return the member of a suite."""
        if set(self.sections) == {""}:
            return Member(self.workload, self.weight, self.name)
        return Member.of_sections(self.workload, self.sections, self.name)


@dataclass(frozen=True)
class Extraction:
    """The workloads of a model, the largest first. ``left`` counts what torch computes, by
    operator and reason; ``work`` is that of all nodes, by section of the suite. An extraction
    without phases and shards is one section without a name."""

    title: str
    found: tuple[Extracted, ...]
    left: Mapping[tuple[str, str], int]
    work: Mapping[str, Work]

    @property
    def covered(self) -> float:
        """The share of all FLOPs that is in workloads."""
        whole = sum(work.flops for work in self.work.values())
        parts = (work.flops for each in self.found for work in each.work.values())
        return sum(parts) / whole if whole else 1.0

    def shares(self, each: Extracted, section: str | None = None) -> tuple[float, float]:
        """Return a workload's share of the FLOPs and of the bytes of a section; without one, the
        largest that it has of any."""
        shares = [
            (work.flops / max(self.work[name].flops, 1), work.bytes / max(self.work[name].bytes, 1))
            for name, work in each.work.items()
            if section is None or name == section
        ]
        return max(flops for flops, _ in shares), max(moved for _, moved in shares)

    def to_json(self) -> dict[str, Any]:
        """Return the extraction as a JSON object."""
        return {
            "title": self.title,
            "covered": self.covered,
            "workloads": [self._json_of(each) for each in self.found],
            "left": [
                {"operator": name, "reason": reason, "count": count}
                for (name, reason), count in self.left.items()
            ],
        }

    def _json_of(self, each: Extracted) -> dict[str, Any]:
        flops, moved = self.shares(each)
        names = ("weight", "flops", "bytes")
        sections = {
            name: dict(zip(names, (weight, *self.shares(each, name)), strict=True))
            for name, weight in each.sections.items()
            if name
        }
        return {
            "workload": each.workload.to_json(),
            "weight": each.weight,
            "places": dict(each.places),
            "flops": flops,
            "bytes": moved,
        } | ({"sections": sections} if sections else {})

    def suite(self) -> Suite:
        """Return the suite that tunes all of them."""
        return Suite(self.title, tuple(each.member() for each in self.found))


def extraction_of(
    model: Model,
    args: Sequence[Any],
    rows: Rows | None,
    dtype: str | None,
    target: Target | str,
    training: bool = False,
    tp: Sequence[int] | None = None,
    draft: Numbers | None = None,
    title: str | None = None,
    frozen: bool = False,
) -> Extraction:
    """See :func:`tilewright.scheduler.extracting.extract`."""
    machine, kind = as_target(target), None if dtype is None else _dtype(dtype)
    if training and frozen:
        raise InputError("weights change in training; allowed: training or frozen")
    made = _Extraction(machine)
    with closing(calls(model, args, rows, tp, draft)) as every:
        for call in every:
            given = (call.module, call.args, machine)
            with uncollected():
                for part in captured_parts(*given, None, kind, training, frozen):
                    made.add(part, call)
    return made.finished(title or title_of(model))


class _Extraction:
    """Collects the regions of graphs."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._found: dict[str, Extracted] = {}
        self._left: Counter[tuple[str, str]] = Counter()
        self._work: dict[str, Work] = {}

    def add(self, part: Captured, call: Call) -> None:
        """Count the regions of a graph, and what is left of it. Ways to compute it that compete
        have equal shares of its weight."""
        ways = ways_of(part.module) if part.frozen else [part.module]
        shared = replace(call, weight=call.weight / len(ways))
        places, left = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        for way in ways:
            parted = partition(way.graph, self._target)
            regions = parted.regions
            if part.frozen:
                regions = tuple(with_packed_weight(each) or each for each in regions)
            for region in regions:
                self._count(region, shared)
            for node in parted.left:
                _add(self._work, shared, Work(flops_of(node), bytes_of(node)))
            about = ((region.workload.key, _place(region, part, call)) for region in regions)
            places |= Counter(about)
            left |= Counter((name_of(node), reason) for node, reason in parted.left.items())
        for (key, place), count in places.items():
            self._found[key].places[place] += count
        self._left += left

    def _count(self, region: Region, call: Call) -> None:
        workload = region.workload
        work = Work(sum(map(flops_of, region.nodes)), workload.least_bytes)
        known = self._found.setdefault(workload.key, Extracted(workload))
        known.sections[call.section] = known.sections.get(call.section, 0) + call.weight
        _add(known.work, call, work)
        _add(self._work, call, work)

    def finished(self, title: str) -> Extraction:
        """Return the extraction; :class:`InputError` if there is nothing in it."""
        if not self._found:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in self._left) or "it is empty"
            raise InputError(
                f"no kernel computes any part of the model: {shortened(reasons)}; "
                "allowed: models with a product, a convolution, attention or a reduction"
            )
        made = Extraction(
            title, tuple(self._found.values()), dict(self._left.most_common()), self._work
        )
        order = sorted(made.found, key=made.shares, reverse=True)
        return replace(made, found=tuple(order))


def _place(region: Region, part: Captured, call: Call) -> str:
    """Return where a region is: the words of the call, the part of a step, and the modules."""
    return " ".join(filter(None, (call.label, part.part, place_of(region))))


def _add(known: dict[str, Work], call: Call, work: Work) -> None:
    known[call.section] = known.get(call.section, Work()) + work * call.weight


def _dtype(name: str) -> torch.dtype:
    found = getattr(torch, name, None) if name.isidentifier() else None
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        raise InputError(f"dtype={shown(name)} is none of floating point, such as bfloat16")
    return found
