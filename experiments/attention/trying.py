"""Schedules of a template on a GPU: the ones that are tried in any case, and others at random."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np
import torch

from experiments.attention.cases import FIXED, AttentionCase
from experiments.operators.explore import Explorer
from measure.cuda.nvrtc import NvrtcBuilder
from measure.records.measurement import Candidate, Job, new_job_id
from spaces.cuda.target import CudaTarget
from spaces.registry import templates_for
from spaces.schedule import Schedule
from spaces.space import Space
from spaces.target import Target

MOST_ERROR = 6e-3
"""Of the output's norm: weights and results are rounded to eight bits or more."""
SECONDS = 60.0


@dataclass
class Trial(Explorer):
    """Judges kernels by the norm of their error; ``errors`` are the least and the greatest."""

    errors: list[float] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        case: AttentionCase,
        target: Target,
        template: str,
        tensors: dict[str, torch.Tensor],
        exact: torch.Tensor,
    ) -> Trial:
        """That of a case in the space of one template."""
        chosen = next(t for t in templates_for(target) if t.name == template)
        w = case.workload
        return cls(Space(w, target, [chosen(w, target)]), tensors, [exact])

    def run(self, count: int, seed: int = 0) -> None:
        """Judge and time the fixed schedules, and so many at random."""
        drawn = self.space.sample(np.random.default_rng(seed), count)
        schedules = [*self._fixed(), *map(self.space.schedule, drawn)]
        job = Job(new_job_id(), self.space.workload, self.space.target)
        wanted = dict.fromkeys(schedules)
        candidates = [Candidate(job, s, self.space.lower(s)) for s in wanted]
        assert isinstance(self.space.target, CudaTarget)
        jobs = os.cpu_count() or 1
        builder = NvrtcBuilder(self.space.target, jobs=jobs, time_limit=SECONDS)
        with closing(builder):
            for built in builder.build(candidates):
                self.judge(built)
        self.errors = [min(self.errors), max(self.errors)] if self.errors else []

    def _fixed(self) -> Iterator[Schedule]:
        (template,) = self.space.templates.values()
        for values in FIXED:
            known = all(values.get(d.name) in d.values for d in template.decisions)
            ordered = tuple((d.name, values[d.name]) for d in template.decisions) if known else ()
            schedule = Schedule(template.name, ordered)
            if known and self.space.why_not(schedule) is None:
                yield schedule

    def _agrees(self, found: torch.Tensor, exact: torch.Tensor) -> bool:
        error = float((found.double() - exact).norm() / exact.norm())
        self.errors.append(error)
        return error < MOST_ERROR
