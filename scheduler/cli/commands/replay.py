"""``tilewright replay``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.scheduler.cli.options import Format
from tilewright.scheduler.cli.text import plain, say

if TYPE_CHECKING:
    from tilewright.scheduler.replay.intervals import Estimate
    from tilewright.scheduler.replay.recording import Recording
    from tilewright.scheduler.replay.repeats import Settings
    from tilewright.scheduler.replay.scores import Measure, Replays


Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        help="Recorded spaces: cache files of Kernel Tuner, T4 results files, or exports of "
        "tilewright.",
    ),
]
Searches = Annotated[
    str,
    typer.Option(
        metavar="NAME[,NAME]",
        help="Which searches to replay: evolutionary, random, exhaustive, genetic, annealing, "
        "iterated-local.",
    ),
]
Evaluations = Annotated[int, typer.Option(min=1, help="Evaluations per run.")]
Repeats = Annotated[int, typer.Option(min=1, help="Runs per search.")]
Batch = Annotated[int, typer.Option(min=1, help="Schedules asked for at a time.")]
FirstSeed = Annotated[
    int, typer.Option(min=0, help="Seed of the first run; each run has the next.")
]
ByTime = Annotated[
    bool, typer.Option("--time", help="Add scores by the recorded compile and benchmark time.")
]
Jobs = Annotated[
    int | None,
    typer.Option(min=1, help="Number of processes.", show_default="one for each core"),
]
ReplayFormat = Annotated[
    Format,
    typer.Option("--format", help="table: for people; json: a line for each file and search."),
]


def replay_command(
    files: Files,
    search: Searches = "evolutionary",
    trials: Evaluations = 256,
    repeats: Repeats = 40,
    batch: Batch = 8,
    seed: FirstSeed = 0,
    time: ByTime = False,
    jobs: Jobs = None,
    format: ReplayFormat = Format.TABLE,
) -> None:
    """Replay searches on recorded spaces, and print how soon they find the best.

    Each run is the real search under the real cost model, with times and failures from the record.
    Intervals hold with 95 % confidence over the runs.

    \b
    Examples:
      tilewright replay gemm_RTX_3090.json.gz
      tilewright replay *.json.gz --search evolutionary,random --format json
    """
    from tilewright.scheduler.replay.repeats import Settings, repeated
    from tilewright.scheduler.replay.scores import measures

    names = _searches(search)
    recordings = _recordings(files, time)
    settings = Settings(trials, repeats, batch, seed)
    asked = measures(trials, time)
    _show(repeated(recordings, names, settings, jobs), settings, asked, format)


def _searches(names: str) -> list[str]:
    """Return the names between commas, each once; :class:`InputError` for one that is unknown."""
    from tilewright.scheduler.strategies.registry import factory

    found = list(dict.fromkeys(names.split(",")))
    for name in found:
        factory(name)
    return found


def _recordings(files: Sequence[Path], time: bool) -> list[Recording]:
    """Return the recorded spaces in files. Raises :class:`InputError` for a file that holds none,
    or lacks the ``time`` that is asked for."""
    from tilewright.scheduler.replay.formats.reading import read_recordings
    from tilewright.spaces.errors import InputError

    found = [made for file in files for made in read_recordings(file, say)]
    for recording in found if time else ():
        if recording.costs is None:
            raise InputError(f"--time: {recording.name} lacks compile and benchmark times")
    return found


def _show(
    replays: Iterable[Mapping[str, Replays]],
    settings: Settings,
    asked: Sequence[Measure],
    format: Format,
) -> None:
    """Print the scores on each recorded space as they come, then those on all together."""
    show = _print_json if format is Format.JSON else _print_table
    done: list[Mapping[str, Replays]] = []
    for found in replays:
        show({name: [each] for name, each in found.items()}, settings, asked)
        done.append(found)
    if len(done) > 1:
        show({name: [found[name] for found in done] for name in done[0]}, settings, asked)
    if format is not Format.JSON:
        _explain(asked)


def _print_json(
    found: dict[str, list[Replays]], settings: Settings, asked: Sequence[Measure]
) -> None:
    from tilewright.scheduler.cli.output import put
    from tilewright.scheduler.replay.report import as_json

    [(reference, first), *_] = found.items()
    for name, replays in found.items():
        others = None if name == reference else first
        put(json.dumps(as_json(name, replays, settings, asked, others), allow_nan=False))


def _print_table(
    found: dict[str, list[Replays]], settings: Settings, asked: Sequence[Measure]
) -> None:
    from tilewright.scheduler.cli.output import put
    from tilewright.scheduler.replay.report import differences, estimates

    [(reference, first), *others] = found.items()
    put(plain(_heading(first)))
    _print_estimates({name: estimates(own, asked) for name, own in found.items()}, asked)
    if others:
        put(f"less those of {reference}, seed by seed")
        _print_estimates({name: differences(own, first, asked) for name, own in others}, asked)


def _print_estimates(found: dict[str, dict[str, Estimate]], asked: Sequence[Measure]) -> None:
    """Print a table: a row for each measure, a column for each search."""
    from tilewright.scheduler.cli.output import print_table, put

    rows = [
        (measure.label, *(_cell(measure, known.get(measure.key)) for known in found.values()))
        for measure in asked
        if any(measure.key in known for known in found.values())
    ]
    print_table(("", *found), rows)
    put("")


def _heading(replays: Sequence[Replays]) -> str:
    from tilewright.scheduler.cli.output import seconds

    if len(replays) > 1:
        return f"all {len(replays)} spaces together"
    known = replays[0].recording
    failed = f", of which {known.failures} failed" if known.failures else ""
    count = f"{len(known.outcomes)} schedules{failed}"
    return f"{known.name}: {count}; the fastest takes {seconds(known.optimum)}"


def _cell(measure: Measure, estimate: Estimate | None) -> str:
    """Return a value with its interval, or a dash for what does not apply."""
    if estimate is None:
        return "-"
    middle = _number(measure, estimate.value)
    if estimate.low is None or estimate.high is None:
        return middle
    return f"{middle} ({_number(measure, estimate.low)} to {_number(measure, estimate.high)})"


def _number(measure: Measure, value: float) -> str:
    if value == float("inf"):
        return "never"
    return (
        f"{value:.1f}"
        if measure.key.startswith(("evaluations", "seconds", "search"))
        else f"{value:.3f}"
    )


def _explain(asked: Sequence[Measure]) -> None:
    from tilewright.scheduler.cli.output import put

    for measure in asked:
        put(f"{measure.label}: {measure.meaning}")
