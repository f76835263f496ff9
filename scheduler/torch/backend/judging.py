"""Judge who computes a region faster: the kernel, or torch compiled on the same nodes.

Both are graphs that Inductor compiled, called in turns on the same tensors. These change from call
to call, so that they are not in the last-level cache, as weights in a model are not. The database
keeps what was found as a run of the workload, as it keeps the time of NumPy's product: the next
compilation asks it.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from math import prod
from statistics import median
from types import MappingProxyType
from typing import Any

import torch

from tilewright.measure.database import Database
from tilewright.measure.records.run import note
from tilewright.scheduler.torch.backend.replays import replayed
from tilewright.scheduler.torch.regions.sizes import Values, number_of, span_of
from tilewright.scheduler.turns import GAIN, rounds
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload

SECONDS = 0.3
ROUNDS = 7
"""Rounds of calls at least, and as many more as there are seconds for."""
LONG_ENOUGH = 2e-4
"""Seconds that the calls between two looks at the clock should take."""
COMMAND = "torch.compile"

Call = Callable[[Sequence[Any]], Any]


@dataclass(frozen=True)
class Times:
    """Seconds of a call of the kernel and of torch, measured in turns."""

    ours: float
    torch: float

    @property
    def gain(self) -> float:
        """The kernel's speed as a multiple of torch's."""
        return self.torch / self.ours

    @property
    def wins(self) -> bool:
        """True if the kernel is faster by more than a measurement may err."""
        return self.gain >= GAIN


@contextmanager
def running() -> Iterator[None]:
    """Run code on real tensors, as models do: not as what is being traced, or compiled, is."""
    from torch.utils._python_dispatch import _disable_current_modes

    with ExitStack() as stack:
        stack.enter_context(_disable_current_modes())
        if hasattr(torch._C, "_DisablePythonDispatcher"):
            stack.enter_context(torch._C._DisablePythonDispatcher())
        stack.enter_context(torch.no_grad())
        yield


def in_turns(ours: Call, rival: Call, inputs: Sequence[Sequence[Any]]) -> Times:
    """Time two calls in turns. Each call takes the next of ``inputs``: none finds in the caches
    what the other one left there.

    The gain is the median over rounds, which a busy machine disturbs least: both calls of a round
    meet the same disturbance.
    """
    for each in inputs[:2]:
        ours(each)
        rival(each)
    found = rounds(_clocks((ours, rival), inputs), ROUNDS, SECONDS)
    theirs = median(other for _, other in found)
    return Times(theirs / median(other / own for own, other in found), theirs)


def _clocks(
    calls: tuple[Call, Call], inputs: Sequence[Sequence[Any]]
) -> Sequence[Callable[[], float]]:
    """Return what runs some calls and answers with the seconds of one, for each of two calls. On a
    GPU these are replays of CUDA graphs, if both calls can be captured."""
    if _on_gpu(inputs):
        try:
            return [replayed(call, inputs) for call in calls]
        except RuntimeError:  # torch's words for what a graph may not do
            torch.cuda.synchronize()
    count, following = _calls(calls[1], inputs), cycle(inputs)

    def seconds(call: Call) -> float:
        return _seconds(call, list(islice(following, count)))

    return [partial(seconds, call) for call in calls]


def _on_gpu(inputs: Sequence[Sequence[Any]]) -> bool:
    return any(isinstance(each, torch.Tensor) and each.is_cuda for each in inputs[0])


def _calls(call: Call, inputs: Sequence[Sequence[Any]]) -> int:
    """Return how many calls take long enough for the clock."""
    once = min(_seconds(call, [each]) for each in (inputs[0], inputs[-1]))
    return max(1, min(1000, round(LONG_ENOUGH / max(once, 1e-7))))


def _seconds(call: Call, inputs: Sequence[Sequence[torch.Tensor]]) -> float:
    """Return the seconds of one of these calls: CPU time where one thread does all, so that others
    on the machine do not count, else wall time. A GPU is waited for."""
    on_gpu = _on_gpu(inputs)
    alone = torch.get_num_threads() == 1 and not on_gpu
    clock = time.thread_time if alone else time.perf_counter
    if on_gpu:
        torch.cuda.synchronize()
    began = clock()
    for each in inputs:
        call(each)
    if on_gpu:
        torch.cuda.synchronize()
    return (clock() - began) / len(inputs)


Limits = Mapping[int, int]
"""The limit below which the whole numbers of an input are, by its place."""


NO_VALUES: Values = MappingProxyType({})


def like(
    inputs: Sequence[Any], limits: Limits = MappingProxyType({}), values: Values = NO_VALUES
) -> list[Any]:
    """Random tensors of these sizes, strides and types, which may be without values, and numbers as
    they are. Whole numbers in tensors are half of their limit: so long is a cache on average. They
    are 0 where no limit is known. What is symbolic follows from the ``values`` of the symbols; it
    has the value that it was captured with where these are not given."""
    return [
        _like(each, limits.get(place, 0), values)
        if isinstance(each, torch.Tensor)
        else _number(each, values)
        for place, each in enumerate(inputs)
    ]


def _like(tensor: torch.Tensor, limit: int, values: Values) -> torch.Tensor:
    shape, strides = (
        tuple(_number(each, values) for each in all_of)
        for all_of in (tensor.shape, tensor.stride())
    )
    memory = torch.empty(span_of(shape, strides), dtype=tensor.dtype, device=tensor.device)
    if tensor.dtype.is_floating_point and tensor.element_size() > 1:
        memory.normal_()
    else:
        memory.fill_(limit // 2)
    return memory.as_strided(shape, strides)


def _number(given: Any, values: Values = NO_VALUES) -> Any:
    """Return a number, a symbolic one by the values of its symbols or as its hint: to ask for its
    value would bind the graph to it."""
    if not isinstance(given, torch.SymInt | torch.SymFloat):
        return given
    return number_of(given, values) if values else given.node.hint


def copied(inputs: Sequence[Any]) -> list[Any]:
    """Return the same inputs once more, which a graph may change in place."""
    return [_copied(each) if isinstance(each, torch.Tensor) else each for each in inputs]


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy of the memory in which a tensor lies, in the same places."""
    memory = tensor.as_strided((span_of(tensor.shape, tensor.stride()),), (1,))
    return memory.clone().as_strided(tensor.shape, tensor.stride())


def size(inputs: Sequence[Any], values: Values = NO_VALUES) -> int:
    """Return the bytes of the elements of all tensors."""
    tensors = [each for each in inputs if isinstance(each, torch.Tensor)]
    shapes = [[_number(extent, values) for extent in each.shape] for each in tensors]
    return sum(
        prod(shape) * each.element_size() for shape, each in zip(shapes, tensors, strict=True)
    )


def cache_bytes(target: Target) -> int:
    """Return the bytes of the last cache before memory."""
    return int(getattr(target, "l3_bytes", 0) or getattr(target, "l2_bytes", 0))


def alike(ours: Any, rival: Any) -> bool:
    """Tell whether two results of graphs are :func:`close`, or equal where they are no tensors."""
    if not (isinstance(ours, torch.Tensor) and isinstance(rival, torch.Tensor)):
        return bool(ours == rival)
    return close(ours, rival)


def close(ours: torch.Tensor, rival: torch.Tensor) -> bool:
    """Tell whether two results differ by rounding alone, as sums in other orders do."""
    if not ours.dtype.is_floating_point:
        return torch.equal(ours, rival)
    allowed = {torch.float64: 1e-9, torch.float32: 1e-4}.get(ours.dtype, 5e-2)
    one, other = ours.double(), rival.double()
    most = float(other.abs().max()) if other.numel() else 0.0
    return bool(((one - other).abs() <= allowed * (most + 1e-30)).all())


# -- what the database keeps -------------------------------------------------------------------


def remembered(
    database: Database,
    workload: Workload,
    target: Target,
    schedule: Schedule,
    operands: Sequence[torch.Tensor],
    rival: Sequence[str] = (),
) -> Times | None:
    """Return the times of an earlier comparison of this very schedule with this version of torch;
    ``rival`` has in words what torch does other than to compile the nodes."""
    for run in reversed(list(database.runs(_session(workload, target, operands, rival)))):
        ours = run.configuration.get("ours_seconds")
        same = run.configuration.get("schedule") == schedule.key
        if same and isinstance(ours, float) and ours > 0 and run.library_seconds:
            return Times(ours, run.library_seconds)
    return None


def remember(
    database: Database,
    workload: Workload,
    target: Target,
    schedule: Schedule,
    operands: Sequence[torch.Tensor],
    times: Times,
    rival: Sequence[str] = (),
) -> None:
    """Keep a comparison, for compilations to come on machines like this one."""
    session = _session(workload, target, operands, rival)
    configuration = {
        "schedule": schedule.key,
        "ours_seconds": times.ours,
        "rival": " ".join(("torch", *rival)),
    }
    run = note(
        workload,
        target,
        session=session,
        command=COMMAND,
        configuration=configuration,
        versions={"torch": torch.__version__},
        reason="compared with torch",
        library_seconds=times.torch,
    )
    database.begin_run(run)


def _session(
    workload: Workload,
    target: Target,
    operands: Sequence[torch.Tensor],
    rival: Sequence[str],
) -> str:
    """Return the name of all comparisons that are about the same: the workload, the machine, the
    strides of operands in the graph, the version of torch, and what it does."""
    lie = [(tuple(map(int, each.shape)), tuple(map(int, each.stride()))) for each in operands]
    words = (workload.key, target.fingerprint, torch.__version__, lie, *rival)
    return "torch " + hashlib.sha256(repr(words).encode()).hexdigest()[:24]
