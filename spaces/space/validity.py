"""Find the values that the rules allow, decision by decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.spaces.rules.judge import Judge, Values, together
from tilewright.spaces.space.points import Points, Population
from tilewright.spaces.template import Rule, Template


@dataclass(frozen=True)
class Step:
    """A decision to make, and the rules that can be judged when it is made."""

    column: int
    judges: tuple[Judge, ...]


class Validity:
    """The rules of some templates as steps: schedules are made one decision after the other, and
    judged by tables that are made once."""

    def __init__(self, points: Points) -> None:
        self._points = points
        self._plans: dict[tuple[int, int | None], Sequence[Step]] = {}
        self._judges: dict[tuple[str, tuple[Rule, ...], str], Judge] = {}
        for template in points.templates.values():
            _check_rules(template)

    def keep_rules(self, population: Population) -> np.ndarray:
        """Tell for each row whether it is a schedule that keeps all rules of its template."""
        keep = np.zeros(len(population), dtype=bool)
        for template in np.unique(population[:, 0]):
            rows = np.flatnonzero(population[:, 0] == template)
            for step in self.steps(int(template), None):
                allowed = self.allowed(population[rows], step)
                rows = rows[allowed[np.arange(len(rows)), population[rows, step.column]]]
            keep[rows] = True
        return keep

    def steps(self, template: int, first: int | None) -> Sequence[Step]:
        """List the steps in which schedules of a template are made: ``first``, then its other
        decisions in order, each with the rules that read it and no later decision.
        """
        points = self._points
        if (template, first) not in self._plans:
            name = points.template_names[template]
            own = [i for i, (owner, _) in enumerate(points.names) if owner == name]
            if first in own:
                own.remove(first)
                own.insert(0, first)
            known: set[str] = set()
            steps = []
            for column in own:
                decision = points.names[column][1]
                known.add(decision)
                rules = [
                    rule
                    for rule in points.templates[name].rules
                    if decision in rule.reads and known.issuperset(rule.reads)
                ]
                judges = self._judged(name, rules, decision)
                if judges or points.sizes[column] > 1:
                    steps.append(Step(column, judges))
            self._plans[template, first] = steps
        return self._plans[template, first]

    def groups(self, template: int, first: int | None) -> Sequence[Sequence[Step]]:
        """Return the steps in groups that no rule connects, if the template ``falls_apart``; else
        all of them as one."""
        steps = self.steps(template, first)
        name = self._points.template_names[template]
        if not self._points.templates[name].falls_apart:
            return [steps]
        group = dict[str, int]()
        for rule in self._points.templates[name].rules:
            known = {group[read] for read in rule.reads if read in group}
            number = min(known, default=len(group))
            group |= dict.fromkeys(rule.reads, number)
            group = {each: number if own in known else own for each, own in group.items()}
        found: dict[object, list[Step]] = {}
        for step in steps:
            decision = self._points.names[step.column][1]
            found.setdefault(group.get(decision, decision), []).append(step)
        return list(found.values())

    def _judged(self, template: str, rules: Sequence[Rule], decision: str) -> tuple[Judge, ...]:
        """Return the judges of rules when ``decision`` is the last of those they read, which are
        the same ones in all orders of decisions; none of rules that allow all that there is."""
        points = self._points
        values: Values = {
            name: (column, points.values[column])
            for (owner, name), column in points.position.items()
            if owner == template
        }
        judges = []
        for group in map(tuple, together(rules, decision, values)):
            key = (template, group, decision)
            if key not in self._judges:
                self._judges[key] = Judge(group, decision, values)
            if not self._judges[key].is_vain:
                judges.append(self._judges[key])
        return tuple(judges)

    def allowed(self, partial: Population, step: Step) -> np.ndarray:
        """Boolean matrix [rows, values]: which values of the step's column its rules allow."""
        if not step.judges:
            return np.ones((len(partial), self._points.sizes[step.column]), dtype=bool)
        valid = step.judges[0].allows(partial)
        for judge in step.judges[1:]:
            valid = valid & judge.allows(partial)
        return valid


def _check_rules(template: Template) -> None:
    names = {decision.name for decision in template.decisions}
    for rule in template.rules:
        if not rule.reads or not names.issuperset(rule.reads):
            raise ValueError(f"rule {rule.name}: reads {rule.reads}, not decisions of {names}")
