"""Jobs and suites: the layers that each tuned, who computes them, and the gain of the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from typing import TYPE_CHECKING

from tilewright.scheduler.cli.output import times
from tilewright.scheduler.cli.text import counted
from tilewright.scheduler.report.figure import Axis, Figure, Kind, Series, series
from tilewright.scheduler.report.plausible import plausible
from tilewright.scheduler.suites.suite import section_weights
from tilewright.scheduler.turns import GAIN
from tilewright.spaces.errors import InputError

if TYPE_CHECKING:
    from tilewright.measure.records.record import Record
    from tilewright.measure.records.run import Run
    from tilewright.scheduler.report.material import Material

MOST_SERIES = 6  # jobs that a figure tells apart

_Seconds = Callable[["Layer"], float | None]


@dataclass(frozen=True)
class Layer:
    """One workload of a job: the ``material`` of it, at a ``place`` of the report, and the
    ``trials`` that the job's ``run`` made; the first that was right is what is gained on."""

    place: int
    material: Material
    run: Run
    trials: Sequence[Record]

    @cached_property
    def name(self) -> str:
        """The name in the suite, or the workload as people write it."""
        return str(self.run.configuration.get("name") or self.material.name)

    @cached_property
    def weight(self) -> float:
        """The factor by which its latency counts in the job."""
        told = self.run.configuration
        weight = told.get("weight")
        if isinstance(sections := told.get("sections"), Mapping):
            try:
                weight = sum(section_weights(sections).values())
            except InputError:
                return 1.0
        return plausible(weight) or 1.0

    @cached_property
    def steps(self) -> list[tuple[float, float]]:
        """Unix times and latencies of the first right trial and of each that was faster."""
        found: list[tuple[float, float]] = []
        for record in self.trials:
            m = record.measurement
            score = plausible(m.score) if m.ok else None
            if score is not None and (not found or score < found[-1][1]):
                found.append((m.started_at + m.run_seconds, score))
        return found

    @property
    def first(self) -> float | None:
        """The latency of the first right trial."""
        return self.steps[0][1] if self.steps else None

    @property
    def best(self) -> float | None:
        """The latency of the fastest one."""
        return self.steps[-1][1] if self.steps else None

    @property
    def gain(self) -> float | None:
        """The speed of the fastest, of the first."""
        return self.steps[0][1] / self.steps[-1][1] if self.steps else None

    @property
    def saved(self) -> float:
        """Seconds that the gain saves in a call of the whole."""
        return self.weight * (self.steps[0][1] - self.steps[-1][1]) if self.steps else 0.0

    @cached_property
    def seconds(self) -> float:
        """Seconds that were spent on its trials."""
        spent = (r.measurement.build_seconds + r.measurement.run_seconds for r in self.trials)
        return fsum(spent)

    def of_torch(self) -> float | None:
        """Return torch's latency, where it was timed in turns with the kernel."""
        return plausible(self.material.torch.library_seconds) if self.material.torch else None

    def of_faster(self) -> float | None:
        """Return the latency of the faster of both."""
        theirs, over = self.of_torch(), self.material.over_torch
        return theirs / max(1.0, over) if theirs and over else None

    @property
    def computed_by(self) -> tuple[str, str]:
        """The name of who computes it, and the reason."""
        over = self.material.over_torch
        if self.best is None:
            return "torch", "no kernel was right"
        template = self.material.best[0].schedule.template if self.material.best else "kernel"
        if over is None:
            library = self.material.over_rival
            if library is None:
                return template, "no library was timed beside it"
            return template, f"it is {times(library.value)} as fast as NumPy"
        if over < GAIN:
            return "torch", f"the kernel has {times(over)} of its speed"
        return template, f"it is {times(over)} as fast as torch"


@dataclass(frozen=True)
class Job:
    """The layers that were tuned together on one target, the one that saves most first."""

    name: str
    is_suite: bool
    target: str
    layers: tuple[Layer, ...]

    @cached_property
    def began(self) -> float:
        """The Unix time at which its first run began."""
        return min(layer.run.started_at for layer in self.layers)

    @cached_property
    def seconds(self) -> float:
        """The seconds that it lasted."""
        return max(0.0, max(layer.run.heartbeat for layer in self.layers) - self.began)

    @cached_property
    def gain(self) -> float | None:
        """The speed of the whole, of that with the first right kernels."""
        return _over(self.layers, lambda each: each.first, lambda each: each.best)

    @cached_property
    def measured(self) -> tuple[float, int] | None:
        """The speed of torch where it is the faster and of kernels elsewhere, of torch alone, over
        the layers that were compared; and their number. None without a comparison."""
        known = [layer for layer in self.layers if layer.material.over_torch is not None]
        found = _over(known, Layer.of_torch, Layer.of_faster)
        return None if found is None else (found, len(known))

    def share(self, layer: Layer) -> float | None:
        """Return the share of all that is saved that a layer saves."""
        saved = fsum(each.saved for each in self.layers)
        return layer.saved / saved if saved > 0 else None


def jobs_of(materials: Sequence[Material]) -> list[Job]:
    """Return the jobs of some materials, the latest first."""
    found: dict[tuple[str, str], list[Layer]] = {}
    for place, material in enumerate(materials):
        trials: dict[str, list[Record]] = {}
        for record in material.searched:
            trials.setdefault(record.run, []).append(record)
        for key, run in material.runs.items():
            if own := trials.get(key):
                job = (run.session or key, material.target.fingerprint)
                found.setdefault(job, []).append(Layer(place, material, run, own))
    jobs = [_job(name, layers) for (name, _), layers in found.items()]
    return sorted(jobs, key=lambda job: -job.began)


def _job(session: str, layers: list[Layer]) -> Job:
    ranked = tuple(sorted(layers, key=lambda layer: -layer.saved))
    suite = ranked[0].run.configuration.get("suite")
    name = str(suite) if suite else ranked[0].name if len(ranked) == 1 else session
    return Job(name, bool(suite), ranked[0].material.target.summary, ranked)


def _over(layers: Sequence[Layer], before: _Seconds, after: _Seconds) -> float | None:
    """Return the weighted sum of latencies before over that after, of layers that have both."""
    pairs = [(each.weight, before(each), after(each)) for each in layers]
    known = [(weight, one, other) for weight, one, other in pairs if one and other]
    if not known:
        return None
    return fsum(w * one for w, one, _ in known) / fsum(w * other for w, _, other in known)


def pareto(materials: Sequence[Material]) -> Figure:
    """Show the gain of each layer of each job over the seconds that its trials took."""
    jobs = [job for job in jobs_of(materials) if job.gain is not None]
    points = [
        (job, [(layer.seconds, layer.gain) for layer in job.layers if layer.gain]) for job in jobs
    ]
    named, others = points[:MOST_SERIES], points[MOST_SERIES:]
    drawn = [series(job.name, Kind.POINTS, found) for job, found in named]
    if others:
        rest = [point for _, found in others for point in found]
        drawn.append(series("other jobs", Kind.POINTS, rest))
    front = list(_front([point for _, found in points for point in found]))
    if len(front) > 1:
        drawn.append(series("most for the time", Kind.STEPS, front))
    count = sum(len(found) for _, found in points)
    caption = f"{counted(count, 'layer')} of {counted(len(jobs), 'job')}"
    if gains := [
        (gain, layer.name) for job in jobs for layer in job.layers if (gain := layer.gain)
    ]:
        most, name = max(gains)
        caption += f"; {name} gained most, {times(most)}"
    return Figure(
        "pareto",
        "Gain for the time spent",
        caption,
        Axis("seconds of trials"),
        Axis("speed, of the first right trial", log=True),
        tuple(drawn),
    )


def _front(points: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Yield the points that no other one surpasses in less time."""
    best = 0.0
    for seconds, gain in sorted(points, key=lambda point: (point[0], -point[1])):
        if gain > best:
            best = gain
            yield seconds, gain


def course(materials: Sequence[Material]) -> Figure:
    """Show the gain of each job as a whole over the seconds since it began."""
    jobs = [job for job in jobs_of(materials) if job.gain is not None][:MOST_SERIES]
    drawn = [Series(job.name, Kind.STEPS, *_steps(job)) for job in jobs]
    late = [_late(job) for job in jobs[:1]]
    caption = f"{counted(len(jobs), 'job')}, layers weighted as a call of the whole needs them"
    if late:
        caption += f"; the last quarter of {jobs[0].name} brought {times(late[0])}"
    return Figure(
        "course",
        "Gain of the whole over time",
        caption,
        Axis("seconds since the job began"),
        Axis("speed, of the first right trials", log=True),
        tuple(drawn),
    )


def _steps(job: Job) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the seconds at which the whole became faster, and its gain then, to the end."""
    latencies = {id(layer): layer.first or 0.0 for layer in job.layers}
    weights = {id(layer): layer.weight for layer in job.layers}
    total = before = fsum(weights[key] * latencies[key] for key in latencies)
    xs, ys = [0.0], [1.0]
    events = sorted(
        (at, id(layer), latency) for layer in job.layers for at, latency in layer.steps[1:]
    )
    for at, key, latency in events:
        total -= weights[key] * (latencies[key] - latency)
        latencies[key] = latency
        xs.append(max(xs[-1], at - job.began))
        ys.append(before / total)
    return (*xs, max(job.seconds, xs[-1])), (*ys, ys[-1])


def _late(job: Job) -> float:
    """Return the gain of the last quarter of a job's time."""
    xs, ys = _steps(job)
    then = max(y for x, y in zip(xs, ys, strict=True) if x <= 0.75 * xs[-1])
    return ys[-1] / then


WHOLE = {"pareto": pareto, "course": course}
"""The figures of a whole database, by name."""
