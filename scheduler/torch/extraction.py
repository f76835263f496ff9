"""The workloads of a model: the regions that the backend hands to kernels, to be tuned beforehand.

A model is captured for each number of rows that it will serve. Equal regions are one workload,
whose weight is the number of their places.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from tilewright.scheduler.suites.suite import Member, Suite
from tilewright.scheduler.torch.blame import failed, shortened
from tilewright.scheduler.torch.capture import captured
from tilewright.scheduler.torch.nodes import name_of
from tilewright.scheduler.torch.partition import Region, partition
from tilewright.scheduler.torch.places import place_of
from tilewright.scheduler.torch.work import bytes_of, flops_of
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.target import Target, as_target
from tilewright.spaces.validation.checks import whole
from tilewright.spaces.workloads.workload import Workload

PHASES = ("decode", "prefill")
"""The phases of serving a model, which have numbers of rows of their own."""
MOST_ROWS = 1 << 24

Rows = Mapping[str, Sequence[int]]
Model = Callable[..., Any]
"""A module, or a function that returns one and its arguments."""


@dataclass
class Extracted:
    """A workload, and where it occurs: ``places`` counts the modules by phase and path."""

    workload: Workload
    flops: int = 0
    bytes: int = 0
    places: Counter[str] = field(default_factory=Counter)

    @property
    def weight(self) -> int:
        """How often it occurs."""
        return sum(self.places.values())

    @property
    def name(self) -> str:
        """The first place, and how many more there are."""
        first, others = next(iter(self.places)), self.weight - 1
        return f"{first} and {others} more" if others else first


@dataclass(frozen=True)
class Extraction:
    """The workloads of a model, the largest first. ``left`` counts what torch computes, by
    operator and reason; ``flops`` and ``bytes`` are those of all nodes."""

    title: str
    found: tuple[Extracted, ...]
    left: Mapping[tuple[str, str], int]
    flops: int
    bytes: int

    @property
    def covered(self) -> float:
        """The share of all FLOPs that is in workloads."""
        return sum(each.flops for each in self.found) / self.flops if self.flops else 1.0

    def shares(self, each: Extracted) -> tuple[float, float]:
        """A workload's share of the FLOPs and of the bytes."""
        return each.flops / max(self.flops, 1), each.bytes / max(self.bytes, 1)

    def to_json(self) -> dict[str, Any]:
        """The extraction as a JSON object."""
        return {
            "title": self.title,
            "covered": self.covered,
            "workloads": [
                {
                    "workload": each.workload.to_json(),
                    "weight": each.weight,
                    "places": dict(each.places),
                    "flops": self.shares(each)[0],
                    "bytes": self.shares(each)[1],
                }
                for each in self.found
            ],
            "left": [
                {"operator": name, "reason": reason, "count": count}
                for (name, reason), count in self.left.items()
            ],
        }

    def suite(self) -> Suite:
        """The suite that tunes all of them."""
        members = (Member(each.workload, each.weight, each.name) for each in self.found)
        return Suite(self.title, tuple(members))


def extraction_of(
    model: Model,
    args: Sequence[Any],
    rows: Rows | None,
    dtype: str | None,
    target: Target | str,
) -> Extraction:
    """See :func:`tilewright.scheduler.extracting.extract`."""
    machine, kind = as_target(target), None if dtype is None else _dtype(dtype)
    made = _Extraction(machine)
    for phase, module, given in _calls(model, args, rows):
        for graph in captured(module, given, machine, dtype=kind):
            made.add(graph, phase)
    return made.finished(_title(model))


class _Extraction:
    """Collects the regions of graphs."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._found: dict[str, Extracted] = {}
        self._left: Counter[tuple[str, str]] = Counter()
        self._flops = self._bytes = 0

    def add(self, graph: fx.Graph, phase: str) -> None:
        """Count the regions of a graph, and what is left of it."""
        parted = partition(graph, self._target)
        self._flops += sum(map(flops_of, graph.nodes))
        for region in parted.regions:
            self._bytes += region.workload.least_bytes
            self._count(region, phase)
        for node, reason in parted.left.items():
            self._bytes += bytes_of(node)
            self._left[name_of(node), reason] += 1

    def _count(self, region: Region, phase: str) -> None:
        workload = region.workload
        known = self._found.setdefault(workload.key, Extracted(workload))
        known.flops += sum(map(flops_of, region.nodes))
        known.bytes += workload.least_bytes
        known.places[" ".join(filter(None, (phase, place_of(region))))] += 1

    def finished(self, title: str) -> Extraction:
        """The extraction; :class:`InputError` if there is nothing in it."""
        if not self._found:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in self._left) or "it is empty"
            raise InputError(f"no kernel computes any part of the model: {shortened(reasons)}")
        order = sorted(self._found.values(), key=lambda each: (-each.flops, -each.bytes))
        left = dict(self._left.most_common())
        return Extraction(title, tuple(order), left, self._flops, self._bytes)


def _calls(
    model: Model, args: Sequence[Any], rows: Rows | None
) -> Iterator[tuple[str, torch.nn.Module, Sequence[Any]]]:
    """The modules that are captured, and their arguments, with the phase of each."""
    if isinstance(model, torch.nn.Module):
        if rows:
            raise InputError("rows are for a function that takes rows; a module was given")
        yield "", model, args
        return
    takes = "rows" in inspect.signature(model).parameters
    if takes != bool(rows):
        says = "takes rows; give their numbers, such as decode=1,8" if takes else "takes no rows"
        raise InputError(f"the function {_title(model)} {says}")
    for phase, counts in (rows or {"": [0]}).items():
        if rows and phase not in PHASES:
            raise InputError(f"unknown phase {shown(phase)}; allowed: {', '.join(PHASES)}")
        for count in counts:
            if rows:
                whole(f"rows of {phase}", count, 1, MOST_ROWS)
            named = {"rows": count} if rows else {}
            yield f"{phase} {count}" if rows else "", *_call(model, named)


def _call(model: Model, named: Mapping[str, int]) -> tuple[torch.nn.Module, Sequence[Any]]:
    """Call a function of the user's; :class:`InputError` with its line if it fails."""
    try:
        found = model(**named)
    except Exception as error:  # anything that the function may raise
        raise failed(error) from error
    match found:
        case (torch.nn.Module() as module, tuple() | list() as args):
            return module, args
    raise InputError(
        f"the function returns a {type(found).__name__}; allowed: a module and a tuple of arguments"
    )


def _dtype(name: str) -> torch.dtype:
    found = getattr(torch, name, None) if name.isidentifier() else None
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        raise InputError(f"dtype={shown(name)} is none of floating point, such as bfloat16")
    return found


def _title(model: Model) -> str:
    return str(getattr(model, "__name__", type(model).__name__))
