"""Kernel Tuner's own search strategies on recorded spaces, scored as ``tilewright replay`` scores
ours.

    python -m experiments.search --peer .kernel-tuner/bin/python FILE... [--strategies NAME,...]

``--peer`` is a Python with the packages of ``requirements.txt``. See README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tilewright.scheduler.replay.formats.reading import read_recordings
from tilewright.scheduler.replay.recording import Outcome, Recording
from tilewright.scheduler.replay.repeats import Settings
from tilewright.scheduler.replay.report import as_json
from tilewright.scheduler.replay.run import Run, run_of
from tilewright.scheduler.replay.scores import Replays, measures
from tilewright.spaces.schedule import Schedule

HERE = Path(__file__).parent
STRATEGIES = (
    "random_sample",
    "genetic_algorithm",
    "simulated_annealing",
    "greedy_ils",
    "greedy_mls",
    "diff_evo",
    "pso",
    "firefly_algorithm",
    "dual_annealing",
    "basinhopping",
    "bayes_opt",
    "hybrid_vndx",
    "adaptive_tabu_greywolf",
)
BATCH = 1  # they evaluate one after the other


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--peer", type=Path, required=True)
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    parser.add_argument("--trials", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hide-failures", action="store_true", help="give them what ran only")
    parser.add_argument("--out", type=Path, help="JSON lines; by default they are printed")
    options = parser.parse_args()
    settings = Settings(options.trials, options.repeats, BATCH, options.seed)
    recordings = [made for file in options.files for made in read_recordings(file, print)]
    peer = options.peer.absolute()  # not what it links to
    lines = []
    for strategy in options.strategies.split(","):
        for report in scored(peer, strategy, recordings, settings, options.hide_failures):
            lines.append(json.dumps(report, allow_nan=False))
            print(lines[-1], flush=True)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")


def scored(
    peer: Path,
    strategy: str,
    recordings: Sequence[Recording],
    settings: Settings,
    hide_failures: bool = False,
) -> Iterator[dict[str, Any]]:
    """Yield the reports of one strategy, of each space and then of all; as those of ``replay``."""
    asked = measures(settings.trials)
    name = f"kernel_tuner.{strategy}" + (".failures_hidden" if hide_failures else "")
    done = []
    for recording in recordings:
        try:
            runs = list(_runs(peer, strategy, recording, settings, hide_failures))
        except subprocess.CalledProcessError as error:
            print(f"{name} on {recording.name}: {error.stderr[-300:]}", file=sys.stderr)
            continue
        done.append(Replays(recording, runs, settings.trials))
        yield as_json(name, done[-1:], settings, asked)
    if len(done) == len(recordings) > 1:
        yield as_json(name, done, settings, asked)


def _runs(
    peer: Path, strategy: str, recording: Recording, settings: Settings, hide_failures: bool
) -> Iterator[Run]:
    [template] = recording.space.templates.values()
    names = [decision.name for decision in template.decisions]
    numbers = map(str, (settings.trials, settings.seed, settings.repeats))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache.json"
        cache.write_text(json.dumps(as_cache(recording, hide_failures)))
        done = subprocess.run(
            [peer, HERE / "theirs.py", cache, strategy, *numbers],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    for line in done.stdout.splitlines():
        points = [tuple(zip(names, values, strict=True)) for values in json.loads(line)]
        yield run_of([recording.outcomes[Schedule(template.name, point)] for point in points])


def as_cache(recording: Recording, hide_failures: bool = False) -> dict[str, Any]:
    """Return a recording of one template as a cache file of Kernel Tuner, complete and closed."""
    [template] = recording.space.templates.values()
    return {
        "device_name": recording.space.target.summary,
        "kernel_name": recording.space.workload.operator,
        "problem_size": [1],
        "tune_params_keys": [decision.name for decision in template.decisions],
        "tune_params": {decision.name: decision.values for decision in template.decisions},
        "objective": "time",
        "cache": {
            ",".join(map(str, schedule.values.values())): schedule.values | _entry(outcome)
            for schedule, outcome in recording.outcomes.items()
            if outcome.seconds is not None or not hide_failures
        },
    }


def _entry(outcome: Outcome) -> dict[str, Any]:
    return {
        "time": "RuntimeFailedConfig" if outcome.seconds is None else 1e3 * outcome.seconds,
        "compile_time": 1e3 * (outcome.cost or 0.0),
        "verification_time": 0.0,
        "benchmark_time": 0.0,
    }


if __name__ == "__main__":
    main()
