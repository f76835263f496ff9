"""The space of schedules of one workload on one target.

A population is an integer matrix, one row a schedule, one column a decision, each entry the
index of the decision's value. Column 0 chooses the template; a decision of another template than
the chosen one is inactive and stays at index 0. Everything that makes schedules (sampling,
mixing, neighbours) is one operation, :meth:`Space.complete`: fill in decisions one after the
other, preferring given values, and never leave the rules. It works on whole populations, so that a
hundred thousand schedules cost seconds, not hours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from spaces.errors import InputError
from spaces.kernel import Kernel
from spaces.quantities import QUANTITIES
from spaces.rules.judge import Judge, Values, together
from spaces.schedule import Schedule
from spaces.target import Target
from spaces.template import Columns, Decision, Rule, Template
from spaces.workload import Workload

Population = np.ndarray
"""Integer matrix [schedules, decisions] of value indices."""

NO_PREFERENCE = -1
REMEMBERED = 4096  # schedules whose validity is: each is asked about several times in its life
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
        self._names: list[tuple[str | None, str]] = [(None, "template")]
        self._values: list[np.ndarray] = [np.array(list(self.templates))]
        for template in templates:
            _check_rules(template)
            for decision in template.decisions:
                self._names.append((template.name, decision.name))
                self._values.append(_column(decision))
        self._position = {name: i for i, name in enumerate(self._names)}
        self._sizes = np.array([len(values) for values in self._values])
        self._index = [{v: i for i, v in enumerate(values.tolist())} for values in self._values]
        self._template_names = list(self.templates)
        self._plans: dict[tuple[int, int | None], Sequence[_Step]] = {}
        self._judges: dict[tuple[str, tuple[Rule, ...], str], Judge] = {}
        self._latest: tuple[bytes, Mapping[str, np.ndarray]] | None = None
        self._reasons = lru_cache(maxsize=REMEMBERED)(self._why_not)

    # -- schedules and populations ---------------------------------------------------------

    def version_of(self, schedule: Schedule) -> str:
        """The name and version of the template that makes this schedule, such as
        ``contraction.2``: part of what makes measurements comparable."""
        template = self.templates[schedule.template]
        return f"{template.name}.{template.version}"

    @property
    def versions(self) -> frozenset[str]:
        """Those of all its templates: schedules of other versions are other kernels today."""
        return frozenset(f"{name}.{t.version}" for name, t in self.templates.items())

    @property
    def width(self) -> int:
        """Number of columns of a population."""
        return len(self._names)

    def schedule(self, row: np.ndarray) -> Schedule:
        """The schedule of one row of a population."""
        template = self._template_names[int(row[0])]
        decisions = tuple(
            (name, self._values[i][row[i]].item())
            for i, (owner, name) in enumerate(self._names)
            if owner == template
        )
        return Schedule(template, decisions)

    def row(self, schedule: Schedule) -> np.ndarray:
        """The row of a schedule. :class:`InputError` if it has a value outside the decisions."""
        reason = self._why_not_a_point(schedule)
        if reason:
            raise InputError(reason)
        return self._row(schedule)

    def _row(self, schedule: Schedule) -> np.ndarray:
        row = np.zeros(self.width, dtype=np.int32)
        row[0] = self._template_names.index(schedule.template)
        for name, value in schedule.decisions:
            i = self._position[schedule.template, name]
            row[i] = self._index[i][value]
        return row

    def rows(self, schedules: Sequence[Schedule]) -> Population:
        """The population of many schedules."""
        if not schedules:
            return np.zeros((0, self.width), dtype=np.int32)
        return np.stack([self.row(schedule) for schedule in schedules])

    def why_not(self, schedule: Schedule) -> str | None:
        """Why the schedule is no point of this space, in words; None if it is one."""
        return self._reasons(schedule)

    def _why_not(self, schedule: Schedule) -> str | None:
        reason = self._why_not_a_point(schedule)
        if reason or self._keeps_rules(self._row(schedule)):
            return reason
        values = schedule.values
        columns = {name: np.asarray(value) for name, value in values.items()}
        reasons = [
            f"{rule.name}: {rule.explain(values)}"
            for rule in self.templates[schedule.template].rules
            if not np.all(rule.holds(columns))
        ]
        return "; ".join(dict.fromkeys(reasons))

    def _keeps_rules(self, row: np.ndarray) -> bool:
        """Whether a row is a schedule of the space, by the tables that sampling uses."""
        steps = self._steps(int(row[0]), None)
        return all(self._valid(row[None], step)[0, row[step.column]] for step in steps)

    def __contains__(self, schedule: Schedule) -> bool:
        return self.why_not(schedule) is None

    def lower(self, schedule: Schedule) -> Kernel:
        """The kernel of ``schedule``; :class:`InputError` says why if it is not in the space."""
        reason = self.why_not(schedule)
        if reason:
            raise InputError(f"schedule is not in the space: {reason}")
        return self.templates[schedule.template].lower(schedule)

    def nearest(self, schedule: Schedule, generator: np.random.Generator) -> Schedule | None:
        """``schedule`` if it is in this space, else one like it that is; None if there is none.

        Decisions that this space does not have are passed over; of a value that it does not
        have, the nearest number is taken, or what the rules allow.
        """
        if schedule in self:
            return schedule
        if schedule.template not in self.templates:
            return None
        wishes = np.full((1, self.width), NO_PREFERENCE, dtype=np.int32)
        wishes[0, 0] = self._template_names.index(schedule.template)
        for name, value in schedule.decisions:
            i = self._position.get((schedule.template, name), 0)
            if i and value in self._index[i]:
                wishes[0, i] = self._index[i][value]
            elif i and isinstance(value, int) and self._values[i].dtype.kind == "i":
                wishes[0, i] = np.argmin(np.abs(self._values[i] - float(value)))
        found = self.complete(wishes, generator)
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
        for t, name in enumerate(self._template_names):
            chosen = np.flatnonzero(population[:, 0] == t)
            if not len(chosen):
                continue
            columns = self._columns(name, population[chosen])
            for quantity, values in self.templates[name].quantities(columns).items():
                if quantity not in result:  # one of the template's own
                    result[quantity] = np.full(len(population), np.nan)
                result[quantity][chosen] = values
        return result

    def decision_columns(self, population: Population) -> dict[str, np.ndarray]:
        """Numeric value of each decision, by ``template.decision``; NaN where inactive.

        A decision over words gives the index of its value.
        """
        result = {"template": population[:, 0].astype(np.float64)}
        for i, (owner, name) in enumerate(self._names[1:], start=1):
            values = self._values[i]
            numeric = values.dtype.kind in "iub"
            column = (values[population[:, i]] if numeric else population[:, i]).astype(np.float64)
            active = population[:, 0] == self._template_names.index(str(owner))
            result[f"{owner}.{name}"] = np.where(active, column, np.nan)
        return result

    # -- making schedules ------------------------------------------------------------------

    def sample(self, generator: np.random.Generator, count: int) -> Population:
        """``count`` random valid schedules, built decision by decision; templates alike often.

        Duplicates are possible; fewer rows come back only where dead ends are many.
        """
        preferences = np.full((count, self.width), NO_PREFERENCE, dtype=np.int32)
        return self.complete(preferences, generator)

    def mixed(
        self, first: Population, second: Population, generator: np.random.Generator
    ) -> Population:
        """Wishes for :meth:`complete` that take each decision from one of two parents."""
        take = generator.random(first.shape) < 0.5
        take[:, 0] = True  # a child has its first parent's template
        inactive = ~self._active(second)
        return np.where(take | inactive, self._preferences(first), second)

    def neighbours(self, rows: np.ndarray, generator: np.random.Generator) -> Population:
        """All distinct valid schedules one decision away from one of ``rows`` (a row or a
        population), repaired where rules ask and few changes suffice; none of ``rows``."""
        origins = np.atleast_2d(rows)
        active = self._active(origins)
        parents, columns, values = [], [], []
        for column, size in enumerate(self._sizes):
            other = np.arange(size)[None] != origins[:, column, None]
            parent, value = np.nonzero(other & active[:, column, None])
            parents.append(parent)
            columns.append(np.full(len(parent), column))
            values.append(value)
        changes = np.concatenate(columns)
        wishes = self._preferences(origins)[np.concatenate(parents)]
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

    # -- counting --------------------------------------------------------------------------

    def count(self) -> int:
        """Number of valid schedules."""
        return sum(len(block) for block in self.blocks())

    def enumerate(self) -> Iterator[Schedule]:
        """Every valid schedule once, in a fixed order."""
        for block in self.blocks():
            for row in block:
                yield self.schedule(row)

    def blocks(self, limit: int = 1 << 16) -> Iterator[Population]:
        """Every valid row once, in populations of bounded size.

        Partial rows grow one decision at a time and rules prune as soon as they can be judged;
        a partial population that grows past ``limit`` is halved and its halves follow in turn.
        """
        for t in range(len(self._template_names)):
            start = np.zeros((1, self.width), dtype=np.int32)
            start[0, 0] = t
            yield from self._expand(start, self._steps(t, None), 0, limit)

    def _expand(
        self, partial: Population, steps: Sequence[_Step], depth: int, limit: int
    ) -> Iterator[Population]:
        if not len(partial):
            return
        if depth == len(steps):
            yield partial
            return
        column = steps[depth].column
        size = int(self._sizes[column])
        if len(partial) * size > limit and len(partial) > 1:
            middle = len(partial) // 2
            yield from self._expand(partial[:middle], steps, depth, limit)
            yield from self._expand(partial[middle:], steps, depth, limit)
            return
        valid = self._valid(partial, steps[depth])
        rows, values = np.nonzero(valid)
        grown = partial[rows]
        grown[:, column] = values
        yield from self._expand(grown, steps, depth + 1, limit)

    # -- internals -------------------------------------------------------------------------

    def _why_not_a_point(self, schedule: Schedule) -> str | None:
        template = self.templates.get(schedule.template)
        if template is None:
            known = ", ".join(self.templates)
            return f"template {schedule.template!r} is not in this space; known: {known}"
        values = schedule.values
        for decision in template.decisions:
            if decision.name not in values:
                return f"decision {decision.name!r} is missing"
        for name, value in values.items():
            i = self._position.get((template.name, name))
            if i is None:
                known = ", ".join(decision.name for decision in template.decisions)
                return f"decision {name!r} is not one of {template.name}: {known}"
            index = self._index[i]
            if value not in index or type(value) is not type(next(iter(index))):
                some = ", ".join(map(str, index))
                return f"{name}={value!r} is not a value of that decision; allowed: {some}"
        return None

    def _active(self, population: Population) -> np.ndarray:
        owners = [-1 if o is None else self._template_names.index(o) for o, _ in self._names]
        active = population[:, :1] == np.array(owners)[None]
        active[:, 0] = True
        return active

    def _preferences(self, population: Population) -> Population:
        """The population as wishes: none for inactive decisions, whose index 0 says nothing."""
        return np.where(self._active(population), population, NO_PREFERENCE)

    def _columns(self, template: str, population: Population) -> Columns:
        return {
            name: self._values[i][population[:, i]]
            for i, (owner, name) in enumerate(self._names)
            if owner == template
        }

    def _steps(self, template: int, first: int | None) -> Sequence[_Step]:
        """How schedules of a template are made: ``first``, then its other decisions as they
        stand, each with the rules that read it and nothing that is decided later."""
        if (template, first) not in self._plans:
            name = self._template_names[template]
            own = [i for i, (owner, _) in enumerate(self._names) if owner == name]
            if first in own:
                own.remove(first)
                own.insert(0, first)
            known: set[str] = set()
            steps = []
            for column in own:
                decision = self._names[column][1]
                known.add(decision)
                rules = [
                    rule
                    for rule in self.templates[name].rules
                    if decision in rule.reads and known.issuperset(rule.reads)
                ]
                if rules or self._sizes[column] > 1:
                    steps.append(_Step(column, self._judged(name, rules, decision)))
            self._plans[template, first] = steps
        return self._plans[template, first]

    def _judged(self, template: str, rules: Sequence[Rule], decision: str) -> tuple[Judge, ...]:
        """The judges of rules when ``decision`` is the last of those they read, which are the same
        ones in all orders of decisions."""
        values: Values = {
            name: (column, self._values[column])
            for (owner, name), column in self._position.items()
            if owner == template
        }
        judges = []
        for group in map(tuple, together(rules, decision, values)):
            key = (template, group, decision)
            if key not in self._judges:
                self._judges[key] = Judge(group, decision, values)
            judges.append(self._judges[key])
        return tuple(judges)

    def _fill(
        self, preferences: Population, generator: np.random.Generator, first: int | None
    ) -> tuple[Population, np.ndarray]:
        rows = np.zeros_like(preferences)
        alive = np.ones(len(rows), dtype=bool)
        free = preferences[:, 0] < 0
        templates = len(self._template_names)
        rows[:, 0] = np.where(free, generator.integers(0, templates, len(rows)), preferences[:, 0])
        for t in range(templates):
            chosen = np.flatnonzero(rows[:, 0] == t)
            if not len(chosen):
                continue
            part, wanted = rows[chosen], preferences[chosen]
            living = np.ones(len(part), dtype=bool)
            for step in self._steps(t, first):
                valid = self._valid(part, step)
                part[:, step.column], found = _pick(valid, wanted[:, step.column], generator)
                living &= found
            rows[chosen], alive[chosen] = part, living
        return rows, alive

    def _valid(self, partial: Population, step: _Step) -> np.ndarray:
        """Boolean matrix [rows, values]: which values of the step's column its rules allow."""
        if not step.judges:
            return np.ones((len(partial), self._sizes[step.column]), dtype=bool)
        valid = step.judges[0].allows(partial)
        for judge in step.judges[1:]:
            valid = valid & judge.allows(partial)
        return valid


@dataclass(frozen=True)
class _Step:
    """A decision to make, and the rules that can be judged when it is made."""

    column: int
    judges: tuple[Judge, ...]


def _column(decision: Decision) -> np.ndarray:
    kinds = {type(value) for value in decision.values}
    if len(kinds) != 1:
        raise ValueError(f"decision {decision.name}: values of more than one type: {kinds}")
    return np.array(decision.values)


def _check_rules(template: Template) -> None:
    names = {decision.name for decision in template.decisions}
    for rule in template.rules:
        if not rule.reads or not names.issuperset(rule.reads):
            raise ValueError(f"rule {rule.name}: reads {rule.reads}, not decisions of {names}")


def _choose(mask: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """For each row of a boolean matrix, the position of a random true entry (0 if none)."""
    return (mask * (1 - generator.random(mask.shape, dtype=np.float32))).argmax(axis=1)


def _pick(
    valid: np.ndarray, preferred: np.ndarray, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """For each row a valid value: nearest to the preferred one, at random without preference.

    The second result tells which rows had any.
    """
    count, values = valid.shape
    if values == 1:
        return np.zeros(count, dtype=np.intp), valid[:, 0]
    if (preferred < 0).all():
        return _choose(valid, generator), np.any(valid, axis=1)
    picked = np.minimum(np.maximum(preferred, 0), values - 1)
    found = valid[np.arange(count), picked]
    open_ = ((picked != preferred) | ~found).nonzero()[0]
    if len(open_):
        valid, preferred = valid[open_], preferred[open_]
        distance = np.abs(np.arange(values)[None, :] - preferred[:, None])
        closeness = np.where(preferred[:, None] < 0, 0, -distance) + generator.random(valid.shape)
        picked[open_] = np.where(valid, closeness, -np.inf).argmax(axis=1)
        found[open_] = np.any(valid, axis=1)
    return picked, found
