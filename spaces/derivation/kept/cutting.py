"""Cuts outputs along kept axes into pieces: a few turns of one kept loop by a few elements of the
fastest kept axis. The innermost taps are written out.

Works on integers and, element by element, on NumPy arrays of them, but for what names loops.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.derivation.kept.view import KeptView, loops_across
from tilewright.spaces.derivation.maps.nest import Loop
from tilewright.spaces.template import Rule


@dataclass(frozen=True)
class Cutting(ABC):
    """The pieces that the decisions ``values`` (integers and words, or arrays of them) lead to:
    a piece has ``coarsening`` turns of the loop ``coarsened_axis``; ``unroll`` counts the taps that
    are written out."""

    view: KeptView
    values: Mapping[str, Any]

    @property
    @abstractmethod
    def lane_elements(self) -> Any:
        """Elements of the fastest kept axis that a piece has."""

    @property
    def across(self) -> Loop | None:
        """The kept loop of which a piece has several turns; None if there is none."""
        return next((x for x in self.view.kept if x.name == self.values["coarsened_axis"]), None)

    @property
    def written_out(self) -> Sequence[Loop]:
        """The innermost loops that are reduced over, which are written out."""
        return self.view.taps[len(self.view.taps) - int(self.values["unroll"]) :]

    @property
    def rolled(self) -> Sequence[Loop]:
        """The loops that stay loops."""
        return self.view.taps[: len(self.view.taps) - int(self.values["unroll"])]

    @property
    def taps_written_out(self) -> Any:
        """Taps that are written out."""
        extents = [loop.extent for loop in self.view.taps]
        counts = [prod(extents[len(extents) - n :]) for n in range(len(extents) + 1)]
        return np.array(counts)[self.values["unroll"]]

    @property
    def counts(self) -> tuple[Any, ...]:
        """Pieces along each kept loop."""
        found = []
        for loop in self.view.kept[:-1]:
            is_across = self.values["coarsened_axis"] == loop.name
            turns = 1 + (self.values["coarsening"] - 1) * is_across
            found.append(ceil_div(loop.extent, turns))
        return (*found, ceil_div(self.view.lane.extent, self.lane_elements))


def turn_rules(view: KeptView, piece: str) -> list[Rule]:
    """Make the rules that limit the turns of a loop for each ``piece``, in the word of the
    template.
    """
    extent = {loop.name: loop.extent for loop in view.kept} | {"none": 1}
    first = loops_across(view)[0]

    def turns(c: Any) -> Any:
        return np.select([c["coarsened_axis"] == n for n in extent], list(extent.values()), 1)

    return [
        Rule(
            "turn_count",
            ("coarsened_axis", "coarsening"),
            lambda c: c["coarsening"] <= turns(c),
            lambda c: f"there are no {c['coarsening']} turns in {extent[c['coarsened_axis']]}",
        ),
        Rule(
            "needless_across",
            ("coarsened_axis", "coarsening"),
            lambda c: (c["coarsening"] > 1) | (c["coarsened_axis"] == first),
            lambda c: f"a {piece} of one turn is the same along {c['coarsened_axis']} and {first}",
        ),
    ]
