"""Replays variants of the search side by side: the same spaces and seeds, all cores.

    python -m experiments.search.variants FILE... --variant NAME[:SETTING=VALUE,...] ...
                [--batch 8,64] [--trials 256] [--repeats 40] [--seed 0] [--jobs N] [--space NAME]
                --out FILE.jsonl

See README.md.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from experiments.search.paired import REACHED, TRIALS, compared
from experiments.search.warm import is_sibling, transferred
from tilewright.costmodel.model import Settings as TreeSettings
from tilewright.costmodel.model import XGBoostModel
from tilewright.costmodel.predictors.blend import Blend
from tilewright.costmodel.stacked import StackedModel
from tilewright.scheduler.defaults import only
from tilewright.scheduler.machine import roofline
from tilewright.scheduler.replay.forked import map_in_processes
from tilewright.scheduler.replay.formats.reading import read_recordings
from tilewright.scheduler.replay.recording import Recording
from tilewright.scheduler.replay.repeats import Settings
from tilewright.scheduler.replay.report import as_json
from tilewright.scheduler.replay.run import Run, replay
from tilewright.scheduler.replay.scores import Replays, measures
from tilewright.scheduler.strategies.evolutionary import WARM, Evolution, EvolutionarySearch
from tilewright.scheduler.strategies.search import Search
from tilewright.scheduler.strategies.second_opinion import SECOND, SecondOpinion
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space

Kind = TypeVar("Kind", Evolution, TreeSettings)

WARM_ROWS = "warm"
"""The setting that lets a search begin with so many rows of each sibling of the space."""

OPINION = "second"
"""The setting that gives such a search a second opinion (1), or none (0)."""

SETTINGS = {f.name for kind in (Evolution, TreeSettings) for f in fields(kind)}
SETTINGS |= {WARM_ROWS, OPINION}


@dataclass(frozen=True)
class Variant:
    """The evolutionary search with other ``settings``: fields of ``Evolution`` and of the trees'
    ``Settings`` by name."""

    name: str
    settings: Mapping[str, float] = field(default_factory=dict)

    def search(self, recording: Recording, siblings: Sequence[Recording], seed: int) -> Search:
        """Return the search of a recording's space, of which ``siblings`` are known to a warm
        one."""
        space = recording.space
        is_warm = WARM_ROWS in self.settings and len(siblings) > 0
        prior = roofline(space.target, only(space))
        if not is_warm:
            evolution = self._applied(Evolution())
            blend = Blend(self._model(space))
            return EvolutionarySearch(space, blend, prior, seed, evolution, far=blend.trees)
        known = transferred(recording, siblings, int(self.settings[WARM_ROWS]), seed)
        warm = EvolutionarySearch(
            space, self._model(space), known.model, seed, self._applied(WARM), known.starters
        )

        def second(avoided: Sequence[Schedule]) -> Search:
            model = StackedModel(known.model, self._applied(TreeSettings()), only(space))
            settings = self._applied(SECOND)
            return EvolutionarySearch(space, model, prior, seed, settings, avoided=avoided)

        return SecondOpinion(space, warm, second) if self.settings.get(OPINION, 1) else warm

    def _model(self, space: Space) -> XGBoostModel:
        return XGBoostModel(self._applied(TreeSettings()), only(space))

    def _applied(self, defaults: Kind) -> Kind:
        kinds = {f.name: type(getattr(defaults, f.name)) for f in fields(defaults)}
        own = {name: kinds[name](v) for name, v in self.settings.items() if name in kinds}
        return replace(defaults, **own)


def parsed(text: str) -> Variant:
    """Return the variant that ``NAME[:SETTING=VALUE,...]`` describes."""
    name, _, rest = text.partition(":")
    settings = {}
    for pair in filter(None, rest.split(",")):
        setting, _, value = pair.partition("=")
        if setting not in SETTINGS:
            raise argparse.ArgumentTypeError(
                f"unknown setting {setting!r}; allowed: {', '.join(sorted(SETTINGS))}"
            )
        settings[setting] = float(value)
    return Variant(name, settings)


def replayed(
    variants: Sequence[Variant],
    recordings: Sequence[Recording],
    ways: Sequence[Settings],
    jobs: int,
    known: Sequence[Recording] = (),
) -> Iterator[tuple[Variant, Settings, list[Replays]]]:
    """Yield the runs of all recordings by each variant, made in each of the ``ways``; ``known`` are
    siblings that are not replayed."""

    def run(item: tuple[Variant, Settings, Recording, int]) -> Run:
        variant, way, recording, seed = item
        siblings = [other for other in (*recordings, *known) if is_sibling(other, recording)]
        search = variant.search(recording, siblings, seed)
        return replay(recording, search, way.trials, way.batch)

    items = [
        (v, way, r, s) for v in variants for way in ways for r in recordings for s in way.seeds
    ]
    runs = map_in_processes(run, items, jobs)
    for variant, way in product(variants, ways):
        made = [[next(runs) for _ in way.seeds] for _ in recordings]
        pairs = zip(recordings, made, strict=True)
        yield variant, way, [Replays(known, own, way.trials) for known, own in pairs]


def fractions(replays: Sequence[Replays]) -> np.ndarray:
    """[spaces, repeats, ``TRIALS``]: the best speed so far, of the fastest schedule's."""
    points = [min(trials, replays[0].trials) - 1 for trials in TRIALS]
    return np.array([each.recording.optimum / each.best[:, points] for each in replays])


def line(found: np.ndarray, first: np.ndarray) -> str:
    """Return a line on a variant: its mean over all spaces, and its gain over the first, seed by
    seed."""
    gains = compared(first.mean(axis=0), found.mean(axis=0))
    told = [
        "{0}: {after} ({gain:+} from {low} to {high})".format(trials, **gains[str(trials)])
        for trials in TRIALS
    ]
    reached = np.mean(found[:, :, -1] >= REACHED)
    return f"{'  '.join(told)}  reach {reached:.3f}  least {found[:, :, -1].mean(axis=1).min():.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--variant", type=parsed, action="append", required=True)
    parser.add_argument("--batch", default="8,64")
    parser.add_argument("--trials", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--space", action="append", help="replay these alone; the rest is known")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    recordings = [made for file in options.files for made in read_recordings(file, print)]
    known = [each for each in recordings if options.space and each.name not in options.space]
    recordings = [each for each in recordings if each not in known]
    ways = [
        Settings(options.trials, options.repeats, int(batch), options.seed)
        for batch in options.batch.split(",")
    ]
    first: dict[Settings, np.ndarray] = {}
    with options.out.open("w") as out:
        for variant, way, made in replayed(options.variant, recordings, ways, options.jobs, known):
            out.writelines(json.dumps(told) + "\n" for told in reports(variant, way, made))
            out.flush()
            found = fractions(made)
            print(variant.name, way.batch, line(found, first.setdefault(way, found)), flush=True)


def reports(
    variant: Variant, way: Settings, made: Sequence[Replays]
) -> Iterator[Mapping[str, Any]]:
    """Yield a line of JSON for each recording, as of ``replay --format json``."""
    for each in made:
        told = as_json(variant.name, [each], way, measures(way.trials))
        yield told | {"settings": dict(variant.settings)}


if __name__ == "__main__":
    main()
