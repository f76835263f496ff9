"""Schedules of a template on a GPU: known ones, neighbours of the best, others at random."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import torch

from experiments.attention.cases import FIXED, AttentionCase, completed
from experiments.operators.exploring.explore import WORKERS, Explorer
from tilewright.measure.cuda.nvrtc import NvrtcBuilder
from tilewright.measure.records.measurement import Candidate, Job, new_job_id
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.registry import templates_for
from tilewright.spaces.schedule import Schedule, Value
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target
from tilewright.spaces.template import Template

MOST_ERROR = 6e-3
"""Allowed error, as a share of the output's norm: weights and results keep eight bits or more."""
MOST_ERROR_FLOAT8 = 4e-2
"""Weights are rounded to four bits."""
SECONDS = 60.0
PARENTS = 3


def serving(case: AttentionCase, target: Target) -> list[type[Template]]:
    """Return the templates of chains that serve a case."""
    chained = [t for t in templates_for(target) if t.name in FIXED]
    return [t for t in chained if t.refuses(case.workload, target) is None]


@dataclass
class Trial(Explorer):
    """Judges kernels by the norm of their error; ``errors`` are the least and the greatest."""

    errors: list[float] = field(default_factory=list)
    most_error: float = MOST_ERROR

    @classmethod
    def of(
        cls,
        case: AttentionCase,
        target: Target,
        template: type[Template],
        tensors: Mapping[str, torch.Tensor],
        exact: torch.Tensor,
    ) -> Trial:
        """Make the trial of a case in the space of one template."""
        w, most = case.workload, MOST_ERROR_FLOAT8 if case.is_float8 else MOST_ERROR
        space = Space(w, target, [template(w, target)])
        return cls(space, tensors, [exact], most_error=most)

    def run(self, known: Iterable[Mapping[str, Value]], count: int, seed: int = 0) -> None:
        """Judge and time the schedules ``known`` and the fixed ones, so many at random, and then so
        many neighbours of the best."""
        generator = np.random.default_rng(seed)
        drawn = self.space.sample(generator, count)
        first = [*known, *FIXED[self._template.name]]
        self.judge_all([*self._valid(first), *map(self.space.schedule, drawn)])
        parents = self.space.rows(self.best[:PARENTS])
        if len(parents) and count:
            found = generator.permutation(self.space.neighbours(parents, generator))
            self.judge_all(map(self.space.schedule, found[:count]))
        self._end()

    def run_known(self, known: Iterable[Mapping[str, Value]], count: int) -> None:
        """Judge and time the first so many of the schedules ``known`` that are valid."""
        self.judge_all(islice(self._valid(known), count))
        self._end()

    def _end(self) -> None:
        self.errors = [min(self.errors), max(self.errors)] if self.errors else []

    def judge_all(self, schedules: Iterable[Schedule]) -> None:
        """Build, judge and time those that were not yet."""
        job = Job(new_job_id(), self.space.workload, self.space.target)
        wanted = [s for s in dict.fromkeys(schedules) if s not in self.calls]
        candidates = [Candidate(job, s, self.space.lower(s)) for s in wanted]
        assert isinstance(self.space.target, CudaTarget)
        builder = NvrtcBuilder(self.space.target, jobs=WORKERS, time_limit=SECONDS)
        with closing(builder):
            for built in builder.build(candidates):
                self.judge(built)

    @property
    def _template(self) -> Template:
        (template,) = self.space.templates.values()
        return template

    def _valid(self, values: Iterable[Mapping[str, Value]]) -> Iterator[Schedule]:
        for chosen in values:
            schedule = completed(self._template, chosen)
            if schedule and self.space.why_not(schedule) is None:
                yield schedule

    def _agrees(self, found: torch.Tensor, exact: torch.Tensor) -> bool:
        error = float((found.double() - exact).norm() / exact.norm())
        self.errors.append(error)
        return error < self.most_error
