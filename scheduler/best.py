"""The best-known kernel of a workload, ready to call."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.costmodel.interfaces import CostModel
from tilewright.scheduler.answer import Answer, Provenance
from tilewright.scheduler.functions.kernel_function import RefusedKernelError
from tilewright.scheduler.limits import check_memory
from tilewright.scheduler.query import answers
from tilewright.spaces.backends import backend
from tilewright.spaces.errors import InputError
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.settings import Default
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from tilewright.measure.database import Database
    from tilewright.scheduler.functions.cpu_function import CpuFunction
    from tilewright.scheduler.functions.cuda_function import CudaFunction
    from tilewright.spaces.language import Program


def best(
    workload: Workload | Program | str,
    target: Target | str = Default.TARGET,
    database: Database | str | Path | None = Default.DATABASE,
    model: CostModel | str | Path | None = None,
    verify: bool = False,
    check_indices: bool | None = None,
    numerics: Numerics | str = Numerics.STRICT,
) -> CpuFunction | CudaFunction:
    """Build the best kernel known for ``workload`` on ``target``, as a Python function.

    Example::

        fast = best("matmul m=512 n=512 k=512", "cpu")
        c = fast(a, b)  # NumPy arrays or torch tensors
        print(fast.provenance)  # measured, transferred or predicted

    Without a measurement in ``database`` the schedule is transferred (from a sibling of the
    machine, or from the nearest shape) or predicted, by ``model`` if one is given
    (:func:`scheduler.query.query`). So there always is a function; its ``provenance`` says which.
    The kernel is built once and kept on disk. Raises :class:`spaces.errors.InputError` for bad
    input, and for a workload that no template serves.

    With ``verify`` the kernel is checked first, on this machine, as ``tune`` checks candidates: in
    a process of its own, on random inputs, every element against the float64 reference. A wrong
    kernel causes a :class:`RuntimeWarning`, and the next best is taken instead. Raises
    :class:`InputError` if none is right, or if the machine fails and none can be checked.

    ``numerics`` is ``"strict"``, or ``"fast"``, which allows algorithms with weaker bounds on
    errors, such as Winograd's (:mod:`spaces.numerics.mode`).

    With ``check_indices`` each call raises :class:`InputError` for an index beyond its limits, or a
    sorted table that falls. Without it, kernels clamp such an index to the nearest valid one, so
    they never leave their arrays. CPU functions check by default. GPU functions do not: a check
    copies indices to the host, waits for the device, and cannot be captured in a CUDA graph.
    """
    with closing(answers(workload, target, database, model, numerics)) as found:
        every = chain([next(found)], found)  # here, so that warnings are of who called
        return _first_built(iter([_first_right(every)]) if verify else every, check_indices)


def _first_built(found: Iterator[Answer], check_indices: bool | None) -> CpuFunction | CudaFunction:
    """Build the answers in order and return the first that compiles; a new schedule may not."""
    refusals: list[RefusedKernelError] = []
    for answer in found:
        function = backend(answer.target.kind).part("function")
        try:
            return function(answer.space, answer.schedule, answer.provenance, check_indices)
        except RefusedKernelError as error:
            refusals.append(error)
            if answer.provenance is not Provenance.PREDICTED:
                warnings.warn(f"passed over: {error}", RuntimeWarning, stacklevel=3)
    raise refusals[0]


def _first_right(found: Iterator[Answer]) -> Answer:
    """Return the first answer whose kernel computes the right result."""
    from tilewright.scheduler.verification import measure

    tried: set[Schedule] = set()
    for answer in found:
        if answer.schedule in tried:
            continue
        tried.add(answer.schedule)
        check_memory(answer.workload, answer.target)
        (verdict,) = measure(answer.space, [answer.schedule])
        if verdict.right:
            return answer
        if verdict.lost:
            raise InputError(
                f"this machine failed, not the kernel: {verdict.error_text}; no kernel for "
                f"{answer.workload} can be checked here; verify=False takes one unchecked"
            )
        warnings.warn(
            f"a kernel fails its check: {verdict.error_kind}: {verdict.error_text}; passed over: "
            f"the {answer.provenance} schedule {answer.schedule} of {answer.workload}",
            RuntimeWarning,
            stacklevel=3,
        )
    raise InputError(
        f"no kernel for {answer.workload} on {answer.target.summary} passes its check; "
        f"tried: {len(tried)} schedules"
    )
