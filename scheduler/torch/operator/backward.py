"""Kernels of gradients, where they were measured and take less time than torch's own operators.

A gradient is measured when somebody has tuned it, such as by ``tilewright tune ... --gradient``.
Whether it is faster is found out where it is first needed: both are timed in turns.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from tilewright.measure.tables.file import EmptyDatabaseError
from tilewright.scheduler.answer import Provenance
from tilewright.scheduler.best import best
from tilewright.scheduler.opening import opened
from tilewright.scheduler.query import query
from tilewright.scheduler.torch.kernels.functions import functions, workload_of
from tilewright.scheduler.torch.kernels.open_keys import is_open
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.program import Program
from tilewright.spaces.target import Target, detect_target
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.calling import calling_of
from tilewright.spaces.workloads.gradients import gradient
from tilewright.spaces.workloads.served import workload_of as workload_of_program
from tilewright.spaces.workloads.workload import Workload

TURNS = 5
"""Calls of each that are timed, after one that is not."""
Gradients = list[Tensor]


@dataclass
class Backward:
    """The kernel of a gradient: ``program`` is the operator's, ``wanted`` its operands to
    differentiate by, ``saved`` the outputs that the kernel reads, ``seconds`` its time on record.
    ``is_faster`` than torch's operators is None until that is known."""

    program: Program
    workload: Workload
    function: Any
    wanted: Sequence[str]
    saved: Sequence[str]
    seconds: float
    is_faster: bool | None = None

    def gradients(
        self, operands: Sequence[Tensor], outputs: Sequence[Tensor], given: Sequence[Tensor]
    ) -> Gradients:
        """Return the gradients by the wanted operands."""
        known = {o.name: each for o, each in zip(self.program.operands, operands, strict=True)}
        named = list(zip(self.program.outputs, given, strict=True))
        known |= {f"d{output.name}": each for output, each in named}
        known |= {o.name: each for o, each in zip(self.program.outputs, outputs, strict=False)}
        arrays = calling_of(self.workload).inputs
        with torch.no_grad():
            found = self.function(*(_laid_out(known[array.name], array) for array in arrays))
        return list(found) if isinstance(found, tuple) else [found]

    def chosen(self, own: Callable[[], Gradients], by_torch: Callable[[], Gradients]) -> Gradients:
        """Return the gradients by what takes less time, which is tried out once."""
        if self.is_faster is None:
            ours, theirs = _in_turns(own, by_torch)
            self.is_faster = ours < theirs
        return own() if self.is_faster else by_torch()


def _laid_out(tensor: Tensor, array: Array) -> Tensor:
    """Return a tensor as the kernel reads it, a copy if it lies otherwise in memory."""
    if tensor.stride() == array.strides and tensor.dtype == getattr(torch, array.dtype):
        return tensor.detach()
    kind = getattr(torch, array.dtype)
    place = torch.empty_strided(array.shape, array.strides, dtype=kind, device=tensor.device)
    return place.copy_(tensor)


def _in_turns(*calls: Callable[[], Gradients]) -> list[float]:
    """Return the least seconds of each, called one after the other."""
    least = [float("inf")] * len(calls)
    for turn in range(TURNS + 1):
        for place, call in enumerate(calls):
            start = time.perf_counter()
            call()
            if turn:
                least[place] = min(least[place], time.perf_counter() - start)
    return least


@dataclass
class Backwards:
    """Gradients that were measured, by the operator's key, the kind of device, the number of
    threads, and the operands to differentiate by."""

    _found: dict[tuple[Any, ...], Backward | None] = field(default_factory=dict)
    _lock: Any = field(default_factory=threading.Lock)

    def find(self, key: str, operands: Sequence[Tensor], wanted: Sequence[bool]) -> Backward | None:
        """Return the kernel of a gradient, or None where none was measured, or where a call is only
        recorded."""
        kind = operands[0].device.type
        if kind != "cpu" or is_open(key) or any(type(each) is not Tensor for each in operands):
            return None
        place = (key, torch.get_num_threads(), tuple(wanted), str(functions.database))
        with self._lock:
            if place not in self._found:
                self._found[place] = self._looked_up(key, wanted)
            return self._found[place]

    def _looked_up(self, key: str, wanted: Sequence[bool]) -> Backward | None:
        if functions.database is None:
            return None
        target = detect_target("cpu", torch.get_num_threads())
        program = workload_of(key).written
        names = [o.name for o, is_wanted in zip(program.operands, wanted, strict=True) if is_wanted]
        outputs = [o.name for o in program.outputs if not o.element.is_integer]
        ways = (outputs, []) if len(outputs) == len(program.outputs) else ()
        found = [self._measured(program, names, saved, target) for saved in ways]
        measured = [each for each in found if each is not None]
        return min(measured, key=lambda each: each.seconds, default=None)

    @staticmethod
    def _measured(
        program: Program, names: Sequence[str], saved: Sequence[str], target: Target
    ) -> Backward | None:
        """Return the kernel of a gradient that reads some outputs, if it was measured."""
        try:
            made = workload_of_program(gradient(program, names, saved))
            if not _has_records(made, target):
                return None
            known = query(made, target, functions.database)
            if known.provenance is not Provenance.MEASURED or known.latency is None:
                return None
            function = best(made, target, functions.database)
            return Backward(program, made, function, names, saved, known.latency)
        except InputError:
            return None


def _has_records(workload: Workload, target: Target) -> bool:
    """Tell whether anything was measured for a workload; much sooner than an answer would."""
    try:
        with opened(functions.database, create=False) as known:
            return known.trials(workload, target) > 0
    except EmptyDatabaseError:
        return False


backwards = Backwards()
"""The gradients of this process."""
