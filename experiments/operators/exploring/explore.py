"""Explores the space of an operator on a GPU: random schedules, then neighbours of the best.

Kernels are compiled, judged against torch in float64 and timed in this process, without what the
tuner does for the safety of a machine and for the database. Needs a GPU.
"""

from __future__ import annotations

import os
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from experiments.gpu_matmul.timing import event, flush
from experiments.operators.exploring.tensors import outputs_like
from tilewright.costmodel.interfaces import Predictor
from tilewright.measure.cuda.launching import entry_point, load_functions, prepare
from tilewright.measure.cuda.nvrtc import NvrtcBuilder
from tilewright.measure.interfaces import Built
from tilewright.measure.records.measurement import Candidate, Job, new_job_id
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.kernel import WORKSPACE, Kernel
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space

GENERATION = 96
"""Neighbours of the best, and a few random schedules, before the best are chosen anew."""
PARENTS = 6
COMPILE_SECONDS = 15.0
WORKERS = len(os.sched_getaffinity(0))
AT_ONCE = 4 * WORKERS
"""Schedules that are compiled before the time is looked at."""


@dataclass
class Explorer:
    """Looks for fast schedules of ``space`` on ``tensors`` (inputs by name); ``exact`` are the
    outputs in float64, and ``slack`` is what of their mean is no error; of places, a share may be
    ``elsewhere``. A ``model`` says which of many to try. ``seconds`` by schedule are medians of few
    calls with a cold L2."""

    space: Space
    tensors: Mapping[str, torch.Tensor]
    exact: Sequence[torch.Tensor]
    model: Predictor | None = None
    slack: float = 1e-5
    elsewhere: float = 0.0
    seconds: dict[Schedule, float] = field(default_factory=dict)
    calls: dict[Schedule, Callable[[], None]] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        target = self.space.target
        assert isinstance(target, CudaTarget)
        self._target = target
        self._outputs = outputs_like(self.space.workload)

    def explore(
        self, seconds: float, seed: int = 0, known: Sequence[Schedule] = ()
    ) -> list[Schedule]:
        """Judge and time schedules for so many seconds, those that are ``known`` before others; the
        best of them first."""
        end = time.monotonic() + seconds
        generator = np.random.default_rng(seed)
        sampled = self._likely(self.space.sample(generator, self._many), 2 * GENERATION)
        population = np.concatenate([self.space.rows(known), sampled]) if known else sampled
        builder = NvrtcBuilder(self._target, jobs=WORKERS, time_limit=COMPILE_SECONDS)
        with closing(builder):
            while len(population):
                for first in range(0, len(population), AT_ONCE):
                    some = population[first : first + AT_ONCE]
                    self._generation(builder, [self.space.schedule(row) for row in some])
                    if time.monotonic() > end:
                        return self.best
                population = self._next(generator)
        return self.best

    @property
    def best(self) -> list[Schedule]:
        """All schedules that are right, the fastest first."""
        return sorted(self.seconds, key=self.seconds.__getitem__)

    def _next(self, generator: np.random.Generator) -> np.ndarray:
        """Return the neighbours of the best, and a few random ones."""
        parents = self.space.rows(self.best[:PARENTS])
        found = self.space.neighbours(parents, generator) if len(parents) else parents
        chosen = self._likely(generator.permutation(found), GENERATION - 16)
        return np.concatenate([chosen, self.space.sample(generator, 16)])

    @property
    def _many(self) -> int:
        """Random schedules that are asked for at first."""
        return 2 * GENERATION if self.model is None else 32 * GENERATION

    def _likely(self, population: np.ndarray, count: int) -> np.ndarray:
        """Return ``count`` rows: those that the model finds the best, or else the first."""
        if self.model is None or len(population) <= count:
            return population[:count]
        score, _ = self.model.predict(self.space, population)
        return population[np.argsort(-score)[:count]]

    def _generation(self, builder: NvrtcBuilder, schedules: Sequence[Schedule]) -> None:
        job = Job(new_job_id(), self.space.workload, self.space.target)
        fresh = [s for s in dict.fromkeys(schedules) if s not in self.calls]
        candidates = [Candidate(job, s, self.space.lower(s)) for s in fresh]
        for built in builder.build(candidates):
            self.judge(built)

    def judge(self, built: Built) -> None:
        """Keep a kernel's time if it is right."""
        schedule = built.candidate.schedule
        if built.binary is None:
            self.outcomes[str(built.error_kind)] += 1
            return
        kernel = built.candidate.kernel
        binary = built.binary if isinstance(built.binary, bytes) else built.binary.read_bytes()
        call = launcher(kernel, binary, self.tensors, self._outputs)
        self.calls[schedule] = call
        for output in self._outputs:
            output.fill_(float("nan") if output.is_floating_point() else -1)
        call()
        if not all(map(self._agrees, self._outputs, self.exact)):
            self.outcomes["wrong"] += 1
            print(f"WRONG: {self.space.workload}: {schedule}", flush=True)
            return
        self.outcomes["right"] += 1
        self.seconds[schedule] = self._time(call)

    def _agrees(self, found: torch.Tensor, exact: torch.Tensor) -> bool:
        """Tell whether an output is right up to a few roundings of its type and of float32."""
        if not found.is_floating_point():
            return float((found != exact).double().mean()) <= self.elsewhere
        unit = torch.finfo(found.dtype).eps
        scale = exact.abs() * (unit + 1e-4) + exact.abs().mean() * self.slack
        return bool(((found.double() - exact).abs() <= scale).all())

    def _time(self, call: Callable[[], None], repeats: int = 5) -> float:
        events = []
        for _ in range(repeats):
            flush()
            start, end = event(), event()
            start.record()
            call()
            end.record()
            events.append((start, end))
        torch.cuda.synchronize()
        return statistics.median(start.elapsed_time(end) * 1e-3 for start, end in events)


def launcher(
    kernel: Kernel,
    cubin: bytes,
    tensors: Mapping[str, torch.Tensor],
    outputs: Sequence[torch.Tensor],
) -> Callable[[], None]:
    """Return a function that queues the kernel on torch's stream."""
    names = [operand.name for operand in kernel.call.arrays[len(tensors) :]]
    addresses = {name: tensor.data_ptr() for name, tensor in tensors.items()}
    addresses |= {n: o.data_ptr() for n, o in zip(names, outputs, strict=True)}
    room = torch.zeros(kernel.call.workspace_bytes, device="cuda", dtype=torch.uint8)
    addresses |= {WORKSPACE: room.data_ptr()}
    launches = prepare(kernel.call, load_functions(cubin, kernel.call, 0), addresses, 0)
    start, pointers = entry_point("cuLaunchKernelEx"), [each.pointers for each in launches]

    def call(keep: Any = (tensors, outputs, launches, room)) -> None:
        for each in pointers:
            status = start(*each, None)
            assert status == 0, f"the launch of {kernel.call.entry} gives {status}"

    return call
