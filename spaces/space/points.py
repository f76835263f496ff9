"""Schedules as numbers: the decisions of all templates side by side, and a row for each schedule.

A population is an integer matrix, one row a schedule, one column a decision, each entry the
index of the decision's value. Column 0 chooses the template; a decision of another template than
the chosen one is inactive and stays at index 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tilewright.spaces.earlier_names import present_name
from tilewright.spaces.schedule import Schedule, Value
from tilewright.spaces.template import Columns, Decision, Template
from tilewright.spaces.validation.nearest import suggestion

Population = np.ndarray
"""Integer matrix [schedules, decisions] of value indices."""

NO_PREFERENCE = -1


class Points:
    """All combinations of decisions of some templates, whether rules allow them or not."""

    def __init__(self, templates: Mapping[str, Template]) -> None:
        self.templates = templates
        self.template_names = list(templates)
        self.names: list[tuple[str | None, str]] = [(None, "template")]
        self.values: list[np.ndarray] = [np.array(self.template_names)]
        for template in templates.values():
            for decision in template.decisions:
                self.names.append((template.name, decision.name))
                self.values.append(_column(decision))
        self.position = {name: i for i, name in enumerate(self.names)}
        self.sizes = np.array([len(values) for values in self.values])
        self._index = [{v: i for i, v in enumerate(values.tolist())} for values in self.values]
        self._types = [type(next(iter(index))) for index in self._index]

    @property
    def width(self) -> int:
        """Number of columns of a population."""
        return len(self.names)

    def template_number(self, name: str) -> int:
        """Return the entry of column 0 that chooses the template ``name``."""
        return self.template_names.index(name)

    def schedule(self, row: np.ndarray) -> Schedule:
        """Return the schedule of one row of a population."""
        template = self.template_names[int(row[0])]
        decisions = tuple(
            (name, self.values[i][row[i]].item())
            for i, (owner, name) in enumerate(self.names)
            if owner == template
        )
        return Schedule(template, decisions)

    def ordered(self, schedule: Schedule) -> Schedule:
        """Return an equal schedule with its decisions in its template's order, unknown ones at the
        end."""
        template = schedule.template

        def place(decision: tuple[str, Value]) -> int:
            return self.position.get((template, decision[0]), self.width)

        return Schedule(template, tuple(sorted(schedule.decisions, key=place)))

    def row(self, schedule: Schedule) -> np.ndarray:
        """Return the row of a schedule of these decisions."""
        row = np.zeros(self.width, dtype=np.int32)
        row[0] = self.template_number(schedule.template)
        for name, value in schedule.decisions:
            i = self.position[schedule.template, name]
            row[i] = self._index[i][value]
        return row

    def why_not(self, schedule: Schedule, is_partial: bool = False) -> str | None:
        """Say why the schedule is no combination of these decisions, in words; None if it is
        one. A partial schedule may lack decisions."""
        template = self.templates.get(schedule.template)
        if template is None:
            near, some = suggestion(schedule.template, self.templates), ", ".join(self.templates)
            return f"template {schedule.template!r} is not in this space; {near}known: {some}"
        values = schedule.values
        known = [decision.name for decision in template.decisions]
        for name in values:
            if name not in known:
                meant = _meant(template.name, name, known)
                return f"decision {name!r} is not one of {template.name}; {meant}"
        for name in known:
            if name not in values and not is_partial:
                return f"decision {name!r} is missing"
        for name, value in values.items():
            column = self.position[template.name, name]
            index = self._index[column]
            if value not in index or type(value) is not self._types[column]:
                some = ", ".join(map(str, index))
                return f"{name}={value!r} is not a value of that decision; allowed: {some}"
        return None

    def active(self, population: Population) -> np.ndarray:
        """Boolean matrix: which entries are decisions of the chosen template."""
        owners = [-1 if o is None else self.template_number(o) for o, _ in self.names]
        active = population[:, :1] == np.array(owners)[None]
        active[:, 0] = True
        return active

    def preferences(self, population: Population) -> Population:
        """Return the population as wishes: none for inactive decisions, whose index 0 says
        nothing."""
        return np.where(self.active(population), population, NO_PREFERENCE)

    def columns(self, template: str, population: Population) -> Columns:
        """Return the decisions' values of a population that all chooses ``template``."""
        return {
            name: self.values[i][population[:, i]]
            for i, (owner, name) in enumerate(self.names)
            if owner == template
        }

    def decision_columns(self, population: Population) -> dict[str, np.ndarray]:
        """Numeric value of each decision, by ``template.decision``; NaN where inactive.

        A decision over words gives the index of its value.
        """
        result = {"template": population[:, 0].astype(np.float64)}
        for i, (owner, name) in enumerate(self.names[1:], start=1):
            values = self.values[i]
            numeric = values.dtype.kind in "iub"
            column = (values[population[:, i]] if numeric else population[:, i]).astype(np.float64)
            active = population[:, 0] == self.template_number(str(owner))
            result[f"{owner}.{name}"] = np.where(active, column, np.nan)
        return result

    def wish(self, schedule: Schedule) -> np.ndarray:
        """Return a row of wishes that is nearest to a schedule of one of these templates.

        Decisions that these templates do not have are passed over; of a value that they do not
        have, the nearest number is taken, or none.
        """
        wishes = np.full(self.width, NO_PREFERENCE, dtype=np.int32)
        wishes[0] = self.template_number(schedule.template)
        for name, value in schedule.decisions:
            i = self.position.get((schedule.template, name), 0)
            if i:
                wishes[i] = self._nearest(i, value)
        return wishes

    def _nearest(self, column: int, value: Value) -> int:
        if value in self._index[column]:
            return self._index[column][value]
        values = self.values[column]
        if isinstance(value, int) and values.dtype.kind == "i":
            return int(np.argmin(np.abs(values - float(value))))
        return NO_PREFERENCE


def _meant(template: str, name: str, known: Sequence[str]) -> str:
    """Return the decision that an unknown name may stand for, its earlier name included, in
    words."""
    today = present_name(template, name)
    if today in known:
        return f"did you mean {today}?"
    return suggestion(name, known).strip() or f"known: {', '.join(known)}"


def _column(decision: Decision) -> np.ndarray:
    kinds = {type(value) for value in decision.values}
    if len(kinds) != 1:
        raise ValueError(f"decision {decision.name}: values of more than one type: {kinds}")
    return np.array(decision.values)
