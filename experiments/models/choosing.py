"""Chooses the schedules that are tried on a GPU, and writes their kernels, without a GPU.

A pool of processes, since sampling and writing kernels is Python's work.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import lru_cache

import numpy as np

from experiments.models.known import Known
from tilewright.measure.cuda.nvrtc import NvrtcBuilder
from tilewright.measure.interfaces import Built
from tilewright.measure.records.measurement import Candidate, Job, new_job_id
from tilewright.scheduler.machine import roofline
from tilewright.scheduler.query import answers
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.workload import Workload

SAMPLED = 1024
"""Random schedules of which the roofline chooses the first ones."""
COMPILE_SECONDS = 15.0
NONE = Known()

spaces = lru_cache(maxsize=256)(space_for)


def process_pool(size: int = 0) -> ProcessPoolExecutor:
    """Start the processes, by default as many as there are cores; each compiles by itself."""
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(size or os.cpu_count() or 1, mp_context=context)


def chosen(
    workload: Workload, target: CudaTarget, parents: Sequence[Schedule], count: int, seed: int
) -> list[Schedule]:
    """Return the ``count`` schedules that the roofline likes best, of random ones or of neighbours
    of ``parents``; equal for equal seeds."""
    space, generator = spaces(workload, target), np.random.default_rng(seed)
    if parents:
        rows = generator.permutation(space.neighbours(space.rows(parents), generator))
    else:
        rows = np.unique(space.sample(generator, SAMPLED), axis=0)
    return _likely(space, rows, target, count)


def transferred(
    workload: Workload, target: CudaTarget, known: Known, name: str, count: int
) -> list[Schedule]:
    """Return at most ``count`` schedules that are known to be fast and in the space: those of the
    operator of this name, then those of others that the roofline likes best."""
    space = spaces(workload, target)
    own = [schedule for schedule in known.own(name) if schedule in space]
    others = [s for s in known.others(name) if s in space and s not in own]
    wanted = max(count - len(own), 0)
    return own[:count] + (_likely(space, space.rows(others), target, wanted) if others else [])


def _likely(space: Space, rows: np.ndarray, target: CudaTarget, count: int) -> list[Schedule]:
    """Return the schedules that the roofline ranks first; among equals, one comes before the
    others."""
    score, _ = roofline(target).predict(space, rows)
    order = np.argsort(-score, kind="stable")
    new = np.diff(score[order], prepend=np.inf) != 0
    best = np.concatenate([order[new], order[~new]])[:count]
    return [space.schedule(row) for row in rows[best]]


def build(
    workload: Workload,
    target: CudaTarget,
    parents: Sequence[Schedule],
    count: int,
    seed: int,
    known: Known = NONE,
    name: str = "",
) -> list[Built]:
    """Return the kernels of ``count`` schedules, two thirds of them :func:`transferred` if so many
    are known, the others :func:`chosen`: built, with their cubins' bytes. What was built before
    comes from the cache on disk."""
    schedules = transferred(workload, target, known, name, 2 * count // 3)
    schedules += chosen(workload, target, parents, count - len(schedules), seed)
    return kernels(spaces(workload, target), schedules)


def untuned_first(workload: Workload, target: CudaTarget, known: Sequence[Schedule]) -> list[Built]:
    """Return the kernel that ``best`` gives where nobody tuned, which is the first prediction that
    builds, then those of what is known, or is like it where the space holds it no more."""
    space, generator = spaces(workload, target), np.random.default_rng(0)
    predicted = (kernels(space, [each.schedule])[0] for each in answers(workload, target, None))
    first = next(built for built in predicted if built.binary is not None)
    near = (space.nearest(schedule, generator) for schedule in known)
    return [first, *kernels(space, (s for s in near if s not in (None, first.candidate.schedule)))]


def kernels(space: Space, schedules: Iterable[Schedule]) -> list[Built]:
    """Return the kernels of schedules, of each once, with their cubins' bytes."""
    assert isinstance(space.target, CudaTarget)
    job = Job(new_job_id(), space.workload, space.target)
    candidates = [Candidate(job, s, space.lower(s)) for s in dict.fromkeys(schedules)]
    with closing(NvrtcBuilder(space.target, jobs=1, time_limit=COMPILE_SECONDS)) as builder:
        return [_whole(built) for built in builder.build(candidates)]


def _whole(built: Built) -> Built:
    """Return the same with the cubin itself in the place of its path, which ends with the
    builder."""
    path = built.binary
    return (
        built
        if path is None or isinstance(path, bytes)
        else replace(built, binary=path.read_bytes())
    )
