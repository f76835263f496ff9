"""Results of replays as plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.scheduler.replay.intervals import Estimate, mean
from tilewright.scheduler.replay.repeats import Settings
from tilewright.scheduler.replay.scores import Measure, Replays


def estimates(replays: Sequence[Replays], asked: Sequence[Measure]) -> dict[str, Estimate]:
    """Return the value of each measure for one search, by the measure's key.

    Over several recordings a mean averages the values of the same repeat; shares and medians count
    all runs. A measure that does not apply is left out.
    """
    found = {}
    for measure in asked:
        values = np.array([measure.values(each) for each in replays])
        if not np.isnan(values).any():
            averaged = measure.estimate is mean
            summed = values.mean(axis=0) if averaged else values.ravel()
            found[measure.key] = measure.estimate(summed)
    return found


def differences(
    replays: Sequence[Replays], others: Sequence[Replays], asked: Sequence[Measure]
) -> dict[str, Estimate]:
    """Say how much more a search's means are than another's on the same recordings, repeat by
    repeat: the two had the same seeds, so that luck which they share does not count."""
    found = {}
    pairs = list(zip(replays, others, strict=True))
    for measure in asked:
        if measure.estimate is mean:
            values = np.array([measure.values(one) - measure.values(other) for one, other in pairs])
            if not np.isnan(values).any():
                found[measure.key] = mean(values.mean(axis=0))
    return found


def as_json(
    search: str,
    replays: Sequence[Replays],
    settings: Settings,
    asked: Sequence[Measure],
    first: Sequence[Replays] | None = None,
) -> dict[str, Any]:
    """Return the scores of a search on one recording or on several together, as JSON values.

    ``null`` stands for bounds that few repeats do not give, and for what most runs do not reach.
    ``gains`` has each run's improvements, ``[evaluation, seconds]``; every curve follows from them.
    ``less_first`` is how much more the means are than those of the ``first`` search.
    """
    about: dict[str, Any] = {"search": search, **vars(settings)}
    about["scores"] = _numbers(estimates(replays, asked))
    if first is not None:
        about["less_first"] = _numbers(differences(replays, first, asked))
    if len(replays) > 1:
        spaces = [each.recording.name for each in replays]
        return {"space": None, "spaces": spaces, **about}
    [only] = replays
    known = only.recording
    return {
        "space": known.name,
        "schedules": len(known.outcomes),
        "failures": known.failures,
        "optimum_seconds": known.optimum,
        **about,
        "gains": [_gains(best) for best in only.best],
    }


def _numbers(estimates: Mapping[str, Estimate]) -> dict[str, dict[str, float | None]]:
    return {
        key: {
            name: value if value is not None and math.isfinite(value) else None
            for name, value in vars(estimate).items()
        }
        for key, estimate in estimates.items()
    }


def _gains(best: np.ndarray) -> list[tuple[int, float]]:
    """Return the evaluations that improved on all before, counted from 1, and their seconds."""
    before = np.concatenate([[np.inf], best[:-1]])
    return [(int(i) + 1, float(best[i])) for i in np.flatnonzero(best < before)]
