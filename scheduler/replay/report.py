"""What replays show, as plain data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from scheduler.replay.intervals import Estimate, mean
from scheduler.replay.repeats import Settings
from scheduler.replay.scores import Measure, Replays


def estimates(replays: Sequence[Replays], asked: Sequence[Measure]) -> dict[str, Estimate]:
    """What each measure says of a search, by the measure's key.

    Of several recordings: means are those of all recordings' values of the same repeat, shares and
    medians those of all runs. What does not apply is left out.
    """
    found = {}
    for measure in asked:
        values = np.array([measure.values(each) for each in replays])
        if not np.isnan(values).any():
            averaged = measure.estimate is mean
            summed = values.mean(axis=0) if averaged else values.ravel()
            found[measure.key] = measure.estimate(summed)
    return found


def as_json(
    search: str, replays: Sequence[Replays], settings: Settings, asked: Sequence[Measure]
) -> dict[str, Any]:
    """The scores of a search on one recording or on several together, as JSON values.

    ``null`` stands for bounds that few repeats do not give, and for what most runs do not reach.
    ``gains`` has each run's improvements, ``[evaluation, seconds]``; every curve follows from them.
    """
    about: dict[str, Any] = {"search": search, **vars(settings)}
    scores = {key: _numbers(value) for key, value in estimates(replays, asked).items()}
    if len(replays) > 1:
        spaces = [each.recording.name for each in replays]
        return {"space": None, "spaces": spaces, **about, "scores": scores}
    [only] = replays
    known = only.recording
    return {
        "space": known.name,
        "schedules": len(known.outcomes),
        "failures": known.failures,
        "optimum_seconds": known.optimum,
        **about,
        "scores": scores,
        "gains": [_gains(best) for best in only.best],
    }


def _numbers(estimate: Estimate) -> dict[str, float | None]:
    return {
        name: value if value is not None and math.isfinite(value) else None
        for name, value in vars(estimate).items()
    }


def _gains(best: np.ndarray) -> list[tuple[int, float]]:
    """The evaluations that improved on all before, counted from 1, and their seconds."""
    before = np.concatenate([[np.inf], best[:-1]])
    return [(int(i) + 1, float(best[i])) for i in np.flatnonzero(best < before)]
