"""Estimate how often tiles of kept loops read the elements that their windows share."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.spaces.derivation.kept.view import Bounded, KeptView


def loads_by_turns(view: KeptView, access: Bounded, c: Any) -> Any:
    """Return the loads of an access for each output and each tap, where a tile has ``turns`` of the
    loop ``across``, by columns of decisions: one, or fewer where turns read the same elements. They
    are shared where the taps that overlap are written out."""
    shared = np.ones(c["coarsening"].shape)
    for loop in view.kept[:-1]:
        step = abs(access.step(loop.name) or 0)
        here = (c["coarsened_axis"] == loop.name) & (c["unroll"] > 0)
        shared = np.where(here & (step == 0), 1.0 / c["coarsening"], shared)
        if tap := _overlapping(view, access, step):
            extent, moves = tap
            different = np.minimum((c["coarsening"] - 1) * moves + extent, c["coarsening"] * extent)
            shared = np.where(here, different / (c["coarsening"] * extent), shared)
    return shared


def _overlapping(view: KeptView, access: Bounded, step: int) -> tuple[int, int] | None:
    """Find the tap that moves along a kept loop: its extent, and the number of its turns that one
    turn of the loop moves; None if there is no such tap.
    """
    for loop in view.taps:
        own = abs(access.step(loop.name) or 0)
        if step and own and step % own == 0 and step // own < loop.extent:
            return loop.extent, step // own
    return None
