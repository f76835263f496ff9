"""The space of schedules of one workload on one target.

Schedules are rows of populations (:mod:`spaces.space.points`), and rules say which rows are valid
(:mod:`spaces.space.validity`). Everything that makes schedules (sampling, mixing, neighbours) is
one operation, :meth:`Space.complete`: fill in decisions one after the other, preferring given
values, and never leave the rules. It works on whole populations, so that a hundred thousand
schedules cost seconds, not hours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache

import numpy as np

from tilewright.spaces.errors import InputError
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.quantities import QUANTITIES
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import counting
from tilewright.spaces.space.points import NO_PREFERENCE, Points, Population
from tilewright.spaces.space.validity import Step, Validity
from tilewright.spaces.target import Target
from tilewright.spaces.template import Template
from tilewright.spaces.validation.text import brief
from tilewright.spaces.workloads.open_axis import opened
from tilewright.spaces.workloads.workload import Workload

REMEMBERED = 4096  # schedules: whether each is valid is asked several times in its life
MOST_TURNS = 64  # attempts to make some decisions that no rule connects to others
SAMPLE_ATTEMPTS = 64  # attempts to draw one schedule at random
NEAR_ATTEMPTS = 4  # attempts to repair a neighbour: if it takes more, it is none


class Space:
    """All valid schedules of ``workload`` on ``target`` that ``templates`` can express."""

    def __init__(self, workload: Workload, target: Target, templates: Sequence[Template]) -> None:
        if not templates:
            raise ValueError("a space needs at least one template")
        self.workload = workload
        self.target = target
        self.templates = {template.name: template for template in templates}
        if len(self.templates) < len(templates):
            raise ValueError(f"two templates of one name: {[t.name for t in templates]}")
        self._points = Points(self.templates)
        self._validity = Validity(self._points)
        self._latest: tuple[bytes, Mapping[str, np.ndarray]] | None = None
        self._reasons = lru_cache(maxsize=REMEMBERED)(self._why_not)

    def __repr__(self) -> str:
        names = ", ".join(self.templates)
        return brief(f"<Space of {names}\n  {self.workload}\n  {self.target.summary}>")

    # -- schedules and populations ---------------------------------------------------------

    def version_of(self, schedule: Schedule) -> str:
        """Return the name and version of the template that makes this schedule, such as
        ``contraction.2``: part of what makes measurements comparable."""
        return self.templates[schedule.template].versioned

    def numerics_of(self, schedule: Schedule) -> Numerics:
        """Return the promise about errors that this schedule's kernel keeps."""
        return self.templates[schedule.template].numerics_of(self.workload)

    @cached_property
    def versions(self) -> frozenset[str]:
        """The versions of all its templates. Schedules of other versions mean other kernels
        today.
        """
        return frozenset(template.versioned for template in self.templates.values())

    def is_earlier(self, versioned: str) -> bool:
        """Tell whether a name such as ``contraction.2`` is another version of one of its templates.
        Schedules of that version meant other kernels.
        """
        return versioned.partition(".")[0] in self.templates and versioned not in self.versions

    @property
    def width(self) -> int:
        """Number of columns of a population."""
        return self._points.width

    def schedule(self, row: np.ndarray) -> Schedule:
        """Return the schedule of one row of a population."""
        return self._points.schedule(row)

    def ordered(self, schedule: Schedule) -> Schedule:
        """Return an equal schedule that says its decisions as its template does: records sort
        them."""
        return self._points.ordered(schedule)

    def row(self, schedule: Schedule) -> np.ndarray:
        """Return the row of a schedule. :class:`InputError` if it has a value outside the
        decisions."""
        reason = self._points.why_not(schedule)
        if reason:
            raise InputError(reason)
        return self._points.row(schedule)

    def rows(self, schedules: Sequence[Schedule]) -> Population:
        """Return the population of many schedules."""
        if not schedules:
            return np.zeros((0, self.width), dtype=np.int32)
        return np.stack([self.row(schedule) for schedule in schedules])

    def placed(self, schedules: Sequence[Schedule]) -> list[np.ndarray | None]:
        """Return the row of each schedule, None for one that is no point of this space: the same as
        to ask each, for many at once."""
        found: list[np.ndarray | None] = [None] * len(schedules)
        known = [i for i, each in enumerate(schedules) if self._points.why_not(each) is None]
        if known:
            rows = np.stack([self._points.row(schedules[i]) for i in known])
            for i, row, keeps in zip(known, rows, self._validity.keep_rules(rows), strict=True):
                found[i] = row if keeps else None
        return found

    def columns(self, template: str, population: Population) -> Mapping[str, np.ndarray]:
        """Return the values of the decisions of a template, for a population that all chooses
        it."""
        return self._points.columns(template, population)

    def decision_columns(self, population: Population) -> dict[str, np.ndarray]:
        """Numeric value of each decision, see :meth:`Points.decision_columns`."""
        return self._points.decision_columns(population)

    def why_not(self, schedule: Schedule) -> str | None:
        """Say why the schedule is no point of this space, in words; None if it is one."""
        return self._reasons(schedule)

    def _why_not(self, schedule: Schedule) -> str | None:
        reason = self._points.why_not(schedule)
        if reason or self._validity.keep_rules(self._points.row(schedule)[None])[0]:
            return reason
        values = schedule.values
        columns = {name: np.asarray(value) for name, value in values.items()}
        reasons = [
            f"{rule.name}: {rule.explain(values)}"
            for rule in self.templates[schedule.template].rules
            if not np.all(rule.holds(columns))
        ]
        return "; ".join(dict.fromkeys(reasons))

    def __contains__(self, schedule: Schedule) -> bool:
        return self.why_not(schedule) is None

    def lower(self, schedule: Schedule) -> Kernel:
        """Return the kernel of ``schedule``; :class:`InputError` says why if it is not in the
        space."""
        reason = self.why_not(schedule)
        if reason:
            raise InputError(f"schedule is not in the space: {reason}")
        return self.templates[schedule.template].lower(schedule)

    def why_not_open(self, schedule: Schedule, axis: str) -> str | None:
        """Say why this schedule has no kernel that takes the extent of ``axis`` at each call; None
        if it has one."""
        reason = self.why_not(schedule)
        return reason or self.templates[schedule.template].why_not_open(schedule, axis)

    def lower_open(self, schedule: Schedule, axis: str) -> Kernel:
        """Return the kernel of ``schedule`` that takes the extent of ``axis`` at each call, at most
        that of the workload; :class:`InputError` says why if there is none."""
        reason = self.why_not_open(schedule, axis)
        if reason:
            raise InputError(f"{axis} cannot be open: {reason}")
        kernel = self.templates[schedule.template].lower_open(schedule, axis)
        return replace(kernel, call=opened(kernel.call, self.workload, axis))

    def nearest(self, schedule: Schedule, generator: np.random.Generator) -> Schedule | None:
        """Return ``schedule`` if it is in this space, else one like it that is; None if there is
        none.

        Decisions that this space does not have are passed over; of a value that it does not
        have, the nearest number is taken, or what the rules allow.
        """
        if schedule in self:
            return self.ordered(schedule)
        if schedule.template not in self.templates:
            return None
        found = self.complete(self._points.wish(schedule)[None], generator)
        return self.schedule(found[0]) if len(found) else None

    def quantities(self, population: Population) -> Mapping[str, np.ndarray]:
        """Physical quantities (see ``spaces.quantities``) of each schedule, and those that a
        template has beside them, float64 arrays.

        Several models are asked about one population, so the last answer is kept.
        """
        rows, latest = population.tobytes(), self._latest
        if latest is None or latest[0] != rows:
            latest = self._latest = (rows, self._quantities(population))
        return latest[1]

    def _quantities(self, population: Population) -> Mapping[str, np.ndarray]:
        result = {name: np.full(len(population), np.nan) for name in QUANTITIES}
        for t, name in enumerate(self.templates):
            chosen = np.flatnonzero(population[:, 0] == t)
            if not len(chosen):
                continue
            columns = self._points.columns(name, population[chosen])
            for quantity, values in self.templates[name].quantities(columns).items():
                if quantity not in result:  # one of the template's own
                    result[quantity] = np.full(len(population), np.nan)
                result[quantity][chosen] = values
        return result

    # -- making schedules ------------------------------------------------------------------

    def sample(self, generator: np.random.Generator, count: int) -> Population:
        """Return ``count`` random valid schedules, built decision by decision; templates alike
        often.

        Duplicates are possible; fewer rows come back only where nearly all are dead ends.
        """
        preferences = np.full((count, self.width), NO_PREFERENCE, dtype=np.int32)
        return self.complete(preferences, generator, attempts=SAMPLE_ATTEMPTS)

    def mixed(
        self, first: Population, second: Population, generator: np.random.Generator
    ) -> Population:
        """Return the wishes for :meth:`complete` that take each decision from one of two
        parents."""
        take = generator.random(first.shape) < 0.5
        take[:, 0] = True  # a child has its first parent's template
        inactive = ~self._points.active(second)
        return np.where(take | inactive, self._points.preferences(first), second)

    def neighbours(self, rows: np.ndarray, generator: np.random.Generator) -> Population:
        """Return all distinct valid schedules one decision away from one of ``rows`` (a row or a
        population), without ``rows`` themselves. They are repaired where rules require it and few
        changes suffice.
        """
        origins = np.atleast_2d(rows)
        active = self._points.active(origins)
        parents, columns, values = [], [], []
        for column, size in enumerate(self._points.sizes):
            other = np.arange(size)[None] != origins[:, column, None]
            parent, value = np.nonzero(other & active[:, column, None])
            parents.append(parent)
            columns.append(np.full(len(parent), column))
            values.append(value)
        changes = np.concatenate(columns)
        wishes = self._points.preferences(origins)[np.concatenate(parents)]
        wishes[np.arange(len(wishes)), changes] = np.concatenate(values)
        changed = [
            self.complete(wishes[changes == c], generator, first=int(c), attempts=NEAR_ATTEMPTS)
            for c in np.unique(changes)
        ]
        found = np.unique(np.concatenate([*changed, origins[:0]]), axis=0)
        same = (found[:, None] == origins[None]).all(axis=2).any(axis=1)
        return found[~same]

    def complete(
        self,
        preferences: Population,
        generator: np.random.Generator,
        first: int | None = None,
        attempts: int = 8,
    ) -> Population:
        """Valid schedules that follow ``preferences`` as closely as the rules allow.

        Decisions are made in order, column ``first`` before the others. Each takes the valid
        value nearest to the preferred one, or a random valid value where the preference is
        NO_PREFERENCE. A row that runs into a dead end starts again with fewer preferences, at
        most ``attempts`` times, and is then left out.
        """
        done = []
        pending = np.asarray(preferences, dtype=np.int32)
        for attempt in range(attempts):
            if not len(pending):
                break
            rows, alive = self._fill(pending, generator, first)
            done.append(rows[alive])
            pending = pending[~alive].copy()
            forget = generator.random(pending.shape) < (attempt + 1) / attempts
            pending[forget] = NO_PREFERENCE
        return np.concatenate(done) if done else np.zeros((0, self.width), dtype=np.int32)

    def completions(
        self, partial: Schedule, generator: np.random.Generator, count: int
    ) -> Population:
        """Return at most ``count`` valid schedules with all decisions that ``partial`` has, and
        random values of the others. There are none where rules forbid it.

        Raises :class:`InputError` for a template, a decision or a value that this space lacks.
        """
        if reason := self._points.why_not(partial, is_partial=True):
            raise InputError(f"schedule is not in the space: {reason}")
        wish = self._points.wish(partial)
        rows = self.complete(np.tile(wish, (count, 1)), generator)
        return rows[((rows == wish) | (wish == NO_PREFERENCE)).all(axis=1)]

    # -- counting --------------------------------------------------------------------------

    def count(self) -> int:
        """Return the number of valid schedules."""
        return sum(len(block) for block in self.blocks())

    def enumerate(self) -> Iterator[Schedule]:
        """Yield every valid schedule once, in a fixed order."""
        for block in self.blocks():
            for row in block:
                yield self.schedule(row)

    def blocks(self, limit: int = 1 << 16) -> Iterator[Population]:
        """Yield every valid row once, in populations of bounded size."""
        return counting.blocks(self._points, self._validity, limit)

    # -- filling in ------------------------------------------------------------------------

    def _fill(
        self, preferences: Population, generator: np.random.Generator, first: int | None
    ) -> tuple[Population, np.ndarray]:
        rows = np.zeros_like(preferences)
        alive = np.ones(len(rows), dtype=bool)
        free = preferences[:, 0] < 0
        templates = len(self.templates)
        rows[:, 0] = np.where(free, generator.integers(0, templates, len(rows)), preferences[:, 0])
        for t in range(templates):
            chosen = np.flatnonzero(rows[:, 0] == t)
            if not len(chosen):
                continue
            part, wanted = rows[chosen], preferences[chosen]
            groups = self._validity.groups(t, first)
            turns = 1 if len(groups) == 1 else MOST_TURNS
            living = np.ones(len(part), dtype=bool)
            for steps in groups:
                living &= self._decide(part, wanted, steps, generator, turns)
            rows[chosen], alive[chosen] = part, living
        return rows, alive

    def _decide(
        self,
        rows: Population,
        wanted: Population,
        steps: Sequence[Step],
        generator: np.random.Generator,
        turns: int,
    ) -> np.ndarray:
        """Make some decisions of ``rows``, those of rows that run into a dead end in several turns;
        the second half of these has no preferences. Tells which rows had one that does not."""
        pending = np.arange(len(rows))
        for turn in range(turns):
            part, living = rows[pending], np.ones(len(pending), dtype=bool)
            part[:, [step.column for step in steps]] = 0
            wishes = wanted[pending]
            if turn > turns // 2:
                wishes[:] = NO_PREFERENCE
            for step in steps:
                valid = self._validity.allowed(part, step)
                part[:, step.column], found = _pick(valid, wishes[:, step.column], generator)
                living &= found
            rows[pending] = part
            pending = pending[~living]
            if not len(pending):
                break
        made = np.ones(len(rows), dtype=bool)
        made[pending] = False
        return made


def _choose(mask: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Find, for each row of a boolean matrix, the position of a random true entry (0 if none)."""
    return (mask * (1 - generator.random(mask.shape, dtype=np.float32))).argmax(axis=1)


def _pick(
    valid: np.ndarray, preferred: np.ndarray, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Find, for each row a valid value: nearest to the preferred one, at random without preference.

    The second result tells which rows had any.
    """
    count, values = valid.shape
    if values == 1:
        return np.zeros(count, dtype=np.intp), valid[:, 0]
    if preferred.max(initial=NO_PREFERENCE) < 0:
        picked = _choose(valid, generator)
        return picked, _entries(valid, picked)
    picked = np.minimum(np.maximum(preferred, 0), values - 1)
    found = _entries(valid, picked)
    open_ = ((picked != preferred) | ~found).nonzero()[0]
    if len(open_):
        valid, preferred = valid[open_], preferred[open_]
        distance = np.abs(np.arange(values)[None, :] - preferred[:, None])
        closeness = np.where(preferred[:, None] < 0, 0, -distance) + generator.random(valid.shape)
        picked[open_] = best = np.where(valid, closeness, -np.inf).argmax(axis=1)
        found[open_] = _entries(valid, best)
    return picked, found


def _entries(matrix: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the entry of each row of a matrix in the column given for it."""
    count, width = matrix.shape
    found: np.ndarray = matrix.ravel().take(np.arange(0, count * width, width) + columns)
    return found
