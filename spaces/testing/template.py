"""Contract of templates. Inherit, and say which spaces it spans and what it refuses."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np

from tilewright.spaces.kernel import Role
from tilewright.spaces.quantities import QUANTITIES
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target
from tilewright.spaces.template import Template
from tilewright.spaces.workloads.workload import Workload


def refusing_rules(space: Space, choose: random.Random) -> set[str]:
    """Return the names of the rules that refuse a schedule made of values at random, in a space of
    one template; the space says what each of them says."""
    (template,) = space.templates.values()
    values = {d.name: choose.choice(d.values) for d in template.decisions}
    columns = {name: np.asarray(value) for name, value in values.items()}
    broken = [rule for rule in template.rules if not np.all(rule.holds(columns))]
    reason = space.why_not(Schedule(template.name, tuple(values.items())))
    assert (reason is None) == (not broken)
    for rule in broken:
        assert f"{rule.name}: {rule.explain(values)}" in str(reason)
    return {rule.name for rule in broken}


def silent_rules(spaces: Iterable[Space], schedules: int) -> set[str]:
    """Return the names of the rules that refuse nothing, among at most so many schedules of each
    space that are made of values at random."""
    choose, spaces = random.Random(0), list(spaces)
    silent = {r.name for s in spaces for t in s.templates.values() for r in t.rules}
    for space in spaces:
        for _ in range(schedules):
            if not silent:
                return silent
            silent -= refusing_rules(space, choose)
    return silent


def checked_quantities(space: Space, seed: int, schedules: int) -> dict[str, np.ndarray]:
    """Return the quantities of at most so many schedules at random, which are complete and
    possible."""
    population = space.sample(np.random.default_rng(seed), schedules)
    assert len(population), space.workload
    quantities = space.quantities(population)
    assert set(quantities) == set(QUANTITIES)
    for name, values in quantities.items():
        assert values.shape == (len(population),), name
        assert np.isfinite(values).all(), name
        assert (values >= 0).all(), name
    assert (quantities["main_bytes"] >= space.workload.least_bytes).all()
    assert (quantities["imbalance"] >= 0.99).all()
    for name in ("vector_fraction", "register_fraction"):
        assert (quantities[name] <= 1).all(), name
    return quantities


class TemplateContract(ABC):
    """Tests of ``spaces.template.Template``; ``tilewright verify`` tells that kernels are right."""

    template: ClassVar[type[Template]]

    @abstractmethod
    def served(self) -> Sequence[tuple[Workload, Target]]:
        """Return the workloads that differ, on targets that the template serves them on."""

    @abstractmethod
    def refused(self) -> Sequence[tuple[Workload, Target]]:
        """List workloads and targets that the template does not serve."""

    def space(self, workload: Workload, target: Target) -> Space:
        """Return a new space of this template alone."""
        assert self.template.why_not(workload, target) is None
        return Space(workload, target, [self.template(workload, target)])

    def spaces(self) -> list[Space]:
        """List the spaces of all that is :meth:`served`."""
        return [self.space(workload, target) for workload, target in self.served()]

    def test_every_workload_has_schedules_that_keep_all_rules(self) -> None:
        for space in self.spaces():
            population = space.sample(np.random.default_rng(1), 32)
            assert len(population), space.workload
            for row in population:
                assert space.why_not(space.schedule(row)) is None

    def test_quantities_are_complete_and_possible(self) -> None:
        for space in self.spaces():
            checked_quantities(space, seed=2, schedules=64)

    def test_a_schedule_always_has_the_same_kernel_and_another_one_another(self) -> None:
        entries: dict[str, tuple[Workload, Schedule]] = {}
        for space in self.spaces():
            again = self.space(space.workload, space.target)
            for row in space.sample(np.random.default_rng(3), 4):
                schedule = space.schedule(row)
                kernel = space.lower(schedule)
                assert kernel == again.lower(schedule)
                assert kernel.call.entry in kernel.source.body
                asked = (space.workload, schedule)
                assert entries.setdefault(kernel.call.entry, asked) == asked

    def test_kernels_take_the_workloads_arrays_and_write_its_outputs(self) -> None:
        for space in self.spaces():
            for row in space.sample(np.random.default_rng(4), 2):
                call = space.lower(space.schedule(row)).call
                roles = {argument.array: argument.role for argument in call.arguments}
                assert len(roles) == len(call.arguments)
                assert set(roles) == set(space.workload.operands)
                assert {a for a in roles if roles[a] is not Role.IN} == set(space.workload.outputs)
                assert 0 <= call.workspace_zeroed <= call.workspace_bytes

    def test_what_breaks_a_rule_is_refused_with_its_sentence(self) -> None:
        choose = random.Random(5)
        for space in self.spaces():
            for _ in range(20):
                refusing_rules(space, choose)

    def test_what_it_does_not_serve_is_refused_in_words(self) -> None:
        for workload, target in self.refused():
            reason = self.template.why_not(workload, target)
            assert reason, workload
            assert reason == reason.strip()
            assert "\n" not in reason
