"""Verify random schedules of a space against the reference: emulated, or on the hardware.

Emulation runs every CUDA thread on the CPU, some 10^9 multiply-adds a second, so a large workload
is checked on a smaller one with the same tails (:func:`emulable`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tilewright.measure.drawing.draw import check_sensitivity
from tilewright.measure.failures import MACHINE
from tilewright.measure.records.measurement import Candidate, ErrorKind, Job, new_job_id
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload as make_workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import NO_PREFERENCE, Space
from tilewright.spaces.workloads.product import product_of
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from tilewright.measure.cuda.emulator import Interleaving
    from tilewright.measure.interfaces import Executor

BATCH = 8  # kernels of one library: compiling one alone costs several times as much
LARGEST = 2**26  # multiply-adds emulated for one schedule: some 2 s, over all interleavings
LARGEST_PROGRAM = 2**18  # points of any other program, which take longer
PRODUCTS_PER_AXIS = 3  # products of a large batch that are verified, along each of its axes
STEP = 256  # extents are shortened by multiples of the largest tile


@dataclass(frozen=True)
class Verdict:
    """The outcome of verifying one schedule: right, wrong or refused.

    A refused schedule (it spills, say, or the machine failed) is unproven, not wrong.
    """

    schedule: Schedule
    error_kind: ErrorKind | None = None
    error_text: str = ""

    @property
    def right(self) -> bool:
        """True if the kernel ran and agrees with the reference."""
        return self.error_kind is None

    @property
    def lost(self) -> bool:
        """True if the machine failed, and failed again on a second try."""
        return self.error_kind in MACHINE

    @property
    def refused(self) -> bool:
        """True if the kernel never ran to its end, for its resources or those of the machine."""
        return self.lost or self.error_kind is ErrorKind.REJECTED

    @property
    def outcome(self) -> str:
        """The outcome in a word: ``right``, ``refused`` or ``wrong``."""
        return "right" if self.right else "refused" if self.refused else "wrong"


def draw(space: Space, count: int, seed: int = 0) -> list[Schedule]:
    """Draw about ``count`` distinct random schedules, equally many of each template.

    A template with fewer schedules gives all it has.
    """
    generator = np.random.default_rng(seed)
    share = -(-count // len(space.templates))
    schedules: list[Schedule] = []
    for i, template in enumerate(space.templates):
        wishes = np.full((4 * share, space.width), NO_PREFERENCE, dtype=np.int32)
        wishes[:, 0] = i
        drawn = map(space.schedule, space.complete(wishes, generator))
        distinct = dict.fromkeys(s for s in drawn if s.template == template)
        schedules += list(distinct)[:share]
    return schedules


def emulable(workload: Workload) -> Workload:
    """Return ``workload``, or shorten it until it is small enough to emulate.

    Its longest extents are shortened by multiples of 256, the largest tile, so the same tails,
    alignments and layouts remain. A batch keeps a few products. In other programs only extents that
    are parameters of a named operator are shortened.
    """
    extents = dict(workload.extents)
    if workload.matmul:
        product = product_of(workload)
        if prod(extents.values()) > LARGEST and not isinstance(product, str):
            extents |= {axis: min(extents[axis], PRODUCTS_PER_AXIS) for axis in product.batch}
        shorter = _shortened(extents, LARGEST)
    else:
        own = {n: v for n, v in workload.parameters if isinstance(v, int) and extents.get(n) == v}
        most = LARGEST_PROGRAM * prod(own.values()) // workload.points
        shorter = _shortened(own, most)
    if shorter.items() <= workload.extents.items():
        return workload
    try:
        return make_workload(workload.operator, **{**dict(workload.parameters), **shorter})
    except InputError:  # some parameter depends on another
        return workload


def _shortened(extents: Mapping[str, int], largest: int) -> dict[str, int]:
    """Shorten the longest extents until ``largest`` points remain, if possible."""
    shorter = dict(extents)
    while shorter and prod(shorter.values()) > largest:
        longest = max(shorter, key=lambda name: shorter[name])
        if shorter[longest] <= STEP:
            break
        excess = prod(shorter.values()) / max(largest, 1)
        fewest = shorter[longest] % STEP or STEP
        halves = (shorter[longest] // 2 - fewest) // STEP * STEP + fewest
        shorter[longest] = max(fewest, halves if excess > 2 else shorter[longest] - STEP)
    return shorter


def emulate(
    space: Space,
    schedules: Sequence[Schedule],
    interleavings: Sequence[Interleaving] | None = None,
    seed: int = 0,
    jobs: int | None = None,
) -> Iterator[Verdict]:
    """Emulate the kernels of ``schedules`` of a CUDA space, and yield a verdict on each, in order.

    Each kernel runs on random inputs by ``seed`` once in each of ``interleavings`` (default: eager,
    lazy and two random ones). ``jobs`` processes run at a time (default: one a core).
    """
    from tilewright.measure.cuda.emulator import INTERLEAVINGS, Emulator, verify

    orders = INTERLEAVINGS if interleavings is None else interleavings
    groups = [schedules[i : i + BATCH] for i in range(0, len(schedules), BATCH)]

    def judge(group: Sequence[Schedule]) -> list[Verdict]:
        kernels = [space.lower(schedule) for schedule in group]
        emulator.build(kernels)
        results = [
            verify(emulator, space.workload, kernel, orders, seed, space.numerics_of(schedule))
            for kernel, schedule in zip(kernels, group, strict=True)
        ]
        return [
            Verdict(schedule, result.error_kind, result.error_text)
            for schedule, result in zip(group, results, strict=True)
        ]

    crew = ThreadPoolExecutor(jobs or os.cpu_count(), thread_name_prefix="emulate")
    with Emulator(BATCH) as emulator, crew as threads:
        try:
            for verdicts in threads.map(judge, groups):
                yield from verdicts
        finally:
            emulator.end()


def measure(
    space: Space, schedules: Sequence[Schedule], executor: Executor | None = None
) -> Iterator[Verdict]:
    """Build and run ``schedules`` on the hardware, and yield a verdict on each, in any order.

    ``executor`` defaults to one of this machine, which must be the space's target.
    """
    from tilewright.measure.executor import LocalExecutor

    check_sensitivity(space.workload)  # or else refused before anything is measured
    job = Job(new_job_id(), space.workload, space.target, thorough=True)
    own = executor or LocalExecutor(space.target)
    try:
        own.submit(job, [Candidate(job, s, space.lower(s)) for s in schedules])
        while own.pending(job):
            for result in own.results(1.0, job):
                found = result.measurement
                yield Verdict(found.schedule, found.error_kind, found.error_text)
    finally:
        if executor is None:
            own.close()
