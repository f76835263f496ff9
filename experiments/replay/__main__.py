"""Replay recorded GPU spaces: ``python -m experiments.replay --data DIR``; see README.md."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.replay.objectives import OBJECTIVES
from tilewright.costmodel.evaluating.metrics import pairwise_accuracy, recall, top
from tilewright.costmodel.interfaces import Example
from tilewright.costmodel.model import XGBoostModel
from tilewright.costmodel.roofs.analytic import AnalyticModel
from tilewright.scheduler.defaults import only
from tilewright.scheduler.replay.formats.reading import read_recordings
from tilewright.scheduler.replay.recording import Recording
from tilewright.scheduler.replay.run import replay
from tilewright.scheduler.replay.scores import Replays
from tilewright.scheduler.strategies.evolutionary import Evolution, EvolutionarySearch
from tilewright.scheduler.strategies.random_search import RandomSearch
from tilewright.scheduler.strategies.search import Search

HERE = Path(__file__).parent
DATA = HERE.parents[2] / "shared" / "data" / "gpu-spaces"
TRIALS = (32, 64, 128, 256)
BATCH = 16
TRAINED_ON = (64, 256)
# The product's model in a search that differs in one setting.
SETTINGS = {"sober": Evolution(optimism=0.0), "hopeful": Evolution(optimism=1.0)}
STRATEGIES = ("random", *OBJECTIVES, *SETTINGS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of recorded spaces")
    parser.add_argument("--only", default="", help="part of a file's name: replay only these")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--strategies", default=",".join(STRATEGIES), help="searches to replay")
    parser.add_argument("--no-models", action="store_true", help="replay searches only")
    parser.add_argument("--out", type=Path, default=HERE / "results.json")
    arguments = parser.parse_args()
    paths = [p for p in sorted(arguments.data.glob("*.json.gz")) if arguments.only in p.name]
    paths = [p for p in paths if "_T4." not in p.name]  # the same space in another format
    if not paths:
        parser.error(f"no recorded spaces in {arguments.data}")
    searches, models = [], []
    for path in paths:
        [recording] = read_recordings(path, print)
        for result in search_all(recording, arguments.strategies.split(","), arguments.seeds):
            searches.append(result)
            print(json.dumps(result), flush=True)
        for result in () if arguments.no_models else predict_all(recording, arguments.seeds):
            models.append(result)
            print(json.dumps(result), flush=True)
    report = {
        "seeds": arguments.seeds,
        "batch": BATCH,
        "summary": {
            "regret": summarise(searches, "strategy", [f"regret_{n}" for n in TRIALS]),
            "models": {
                str(n): summarise(
                    [m for m in models if m["rows"] == n],
                    "objective",
                    ["pairwise", "top1", "top5", "recall1"],
                )
                for n in TRAINED_ON
            },
        },
        "searches": searches,
        "models": models,
    }
    arguments.out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report["summary"], indent=1))


def search_all(
    recording: Recording, strategies: Sequence[str], seeds: int
) -> Iterator[dict[str, Any]]:
    """Yield the regret of each strategy after ``TRIALS`` trials, mean over seeds."""
    for strategy in strategies:
        searches = [make_search(strategy, recording, seed) for seed in range(seeds)]
        runs = [replay(recording, search, TRIALS[-1], BATCH) for search in searches]
        regret = Replays(recording, runs, TRIALS[-1]).best / recording.optimum - 1.0
        result: dict[str, Any] = {"space": recording.name, "strategy": strategy}
        for trials in TRIALS:
            result[f"regret_{trials}"] = round(float(regret[:, trials - 1].mean()), 4)
            result[f"worst_{trials}"] = round(float(regret[:, trials - 1].max()), 4)
        yield result


def make_search(strategy: str, recording: Recording, seed: int) -> Search:
    """Return the product's own search, over a recorded space."""
    space = recording.space
    if strategy == "random":
        return RandomSearch(space, seed)
    model = OBJECTIVES.get(strategy, XGBoostModel)(space_for=only(space))
    prior = AnalyticModel(space_for=only(space))
    return EvolutionarySearch(space, model, prior, seed, SETTINGS.get(strategy))


def predict_all(recording: Recording, seeds: int) -> Iterator[dict[str, Any]]:
    """Yield how well models that saw a few random schedules rank all others, mean over seeds."""
    space, schedules = recording.space, list(recording.outcomes)
    population, score = space.rows(schedules), recording.optimum / recording.seconds
    for rows in TRAINED_ON:
        for name, kind in OBJECTIVES.items():
            found = []
            for seed in range(seeds):
                order = np.random.default_rng(seed).permutation(len(population))
                model, known, rest = kind(space_for=only(space)), order[:rows], order[rows:]
                told = [(schedules[i], recording.outcomes[schedules[i]].seconds) for i in known]
                model.fit([Example(space.workload, space.target, *each) for each in told])
                truth = score[rest] / score[rest].max()
                found.append(quality(model.predict(space, population[rest])[0], truth))
            mean = {key: round(float(np.mean([f[key] for f in found])), 4) for key in found[0]}
            yield {"space": recording.name, "objective": name, "rows": rows, **mean}


def quality(predicted: np.ndarray, score: np.ndarray) -> dict[str, float]:
    return {
        "pairwise": pairwise_accuracy(predicted, score),
        "top1": top(predicted, score, 1),
        "top5": top(predicted, score, 5),
        "recall1": recall(predicted, score, 0.01),
    }


def summarise(results: list[dict[str, Any]], by: str, keys: list[str]) -> dict[str, Any]:
    """Return the mean of each key over all spaces, for each value of ``by``."""
    return {
        name: {
            key: round(float(np.mean([r[key] for r in results if r[by] == name])), 4)
            for key in keys
        }
        for name in dict.fromkeys(r[by] for r in results)
    }


if __name__ == "__main__":
    main()
