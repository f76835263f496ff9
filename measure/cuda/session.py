"""One workload on a device: its buffers, and how candidates are judged and timed on them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from statistics import median

import numpy as np

from tilewright.measure.cpu.problem import index_of
from tilewright.measure.cuda.buffers import GUARD, POISON, Buffers
from tilewright.measure.cuda.device import (
    Device,
    DeviceError,
    LoadError,
    MemoryShortError,
    Prepared,
)
from tilewright.measure.cuda.heating import SHORT
from tilewright.measure.cuda.problems import HostDraws, set_up
from tilewright.measure.cuda.trusted import oracle
from tilewright.measure.records.measurement import ErrorKind
from tilewright.measure.timing import TimingProtocol
from tilewright.spaces.kernel import WORKSPACE, Call
from tilewright.spaces.numerics.allowance import allowed
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.operators import workload
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.workload import Workload

GRAPH_CALLS = 20  # calls in the graph that times short ones
COOLING_CALL = 50e-6  # while L2 is flushed between calls this short, the device cools
PULSE_STEPS = 8192
BLOCKS = 4  # blocks per multiprocessor of the kernels that walk over arrays
CHECKED = workload("matmul", m=67, n=45, k=33, b="col")


@dataclass
class Trial:
    """One candidate and what has become known of it: its ``call``, which was ``prepared`` from its
    ``binary`` and has its ``workspace`` at that address, 0 if it takes none; ``samples`` are
    seconds of one call. It keeps the promise of ``numerics``."""

    call: Call
    binary: Path
    numerics: Numerics = Numerics.STRICT
    prepared: Prepared | None = None
    workspace: int = 0
    judged: float = 0.0  # seconds of the last call while it was judged
    samples: list[float] = field(default_factory=list)
    slow: bool = False
    error_kind: ErrorKind | None = None
    error_text: str = ""

    def refuse(self, error: LoadError) -> None:
        """Note that the device does not take the candidate, so that none of it ran."""
        is_short = isinstance(error, MemoryShortError)
        self.prepared, self.error_text = None, str(error)
        self.error_kind = ErrorKind.MEMORY if is_short else ErrorKind.REJECTED


class MeasuringSession:
    """The problem of one workload in device memory (:mod:`measure.cuda.problems`), random by
    ``seed``; all elements of outputs are judged if it is ``final``. A context manager: its memory
    lives within it. ``host`` keeps problems that are drawn there.
    """

    def __init__(
        self,
        device: Device,
        workload: Workload,
        seed: int,
        pulse_steps: int = PULSE_STEPS,
        final: bool = False,
        host: HostDraws | None = None,
    ) -> None:
        self._device, self._workload = device, workload
        self._buffers = Buffers(device, BLOCKS * device.multiprocessors)
        self._problem = set_up(self._buffers, workload, seed, final, host or HostDraws())
        self._compare = [
            (output, self._buffers.bound(oracle.compare(output, self._buffers.blocks)))
            for output in workload.outputs
        ]
        pulse = oracle.pulse(device.multiprocessors, pulse_steps)
        self._buffers.add(*pulse.call.arrays)
        self._pulse = self._buffers.bound(pulse)
        self._pulse()
        self._buffers.report()  # waits, so that later faults are others'

    def __enter__(self) -> MeasuringSession:
        return self

    def __exit__(self, *_: object) -> None:
        self._buffers.__exit__()

    def load(self, trial: Trial) -> None:
        """Prepare the candidate's call; one that the device does not take, or whose binary is gone,
        gets an error."""
        call, addresses = trial.call, dict(self._buffers.addresses)
        try:
            if call.workspace_bytes:
                trial.workspace = self._buffers.guarded(call.workspace_bytes)
                addresses[WORKSPACE] = trial.workspace
                self._device.fill(trial.workspace, POISON, call.workspace_bytes)
                self._device.fill(trial.workspace, 0, call.workspace_zeroed)
            trial.prepared = self._device.bind(call, trial.binary, addresses)
        except LoadError as error:
            trial.refuse(error)
        except OSError as error:
            text = f"cannot read the binary: {error.strerror}"
            trial.error_kind, trial.error_text = ErrorKind.DEVICE, text

    def judge(self, trial: Trial, protocol: TimingProtocol, best: float) -> None:
        """Run the candidate on a poisoned output, twice if it is fast, and look at what it left.

        Its last call is timed, for the driver loads a kernel when it is first called: one far
        slower than ``best`` (seconds) is marked as slow.
        """
        assert trial.prepared is not None
        for number in (1, 2):
            try:
                trial.judged = seconds = self._poisoned_call(trial)
            except LoadError as error:
                trial.refuse(error)
                return
            if fault := self._fault(trial, f"call {number}"):
                trial.error_kind, trial.error_text = fault
                return
            last = number == 2 or seconds > protocol.recheck_seconds
            if last and seconds > protocol.slow_factor * best + protocol.cold_seconds:
                trial.slow, trial.samples = True, [seconds]
            if last:
                return

    def other_inputs(self, numerics: Numerics = Numerics.STRICT) -> Iterator[str]:
        """Return the names of other problems, on which kernels of ``numerics`` are right. Each
        takes the place of the first one; that is back after the last."""
        return self._problem.others(numerics)

    def judge_once(self, trial: Trial, name: str) -> bool:
        """Run the candidate on a poisoned output; whether what it left is right."""
        self._poisoned_call(trial)
        if fault := self._fault(trial, name):
            trial.error_kind, trial.error_text = fault
        return fault is None

    def judge_again(self, trial: Trial) -> None:
        """Look once more at the output of a candidate that was timed: it may have gone wrong."""
        self._poisoned_call(trial)
        if fault := self._wrong(trial, "last call"):
            trial.error_kind, trial.error_text = fault
            trial.samples = []

    def rounds(
        self, trials: Sequence[Trial], protocol: TimingProtocol, started: Callable[[int], None]
    ) -> Iterator[float]:
        """Time ``trials`` in shuffled rounds, after telling ``started`` the number of each.

        Gives the pulse's time of each round that counts; those in which the clock had drifted
        are repeated, at most as often again.
        """
        self._heat(trials, protocol.heat, started)
        pulses: list[float] = []
        rounds = extra = protocol.samples
        while rounds:
            pulse = self._device.seconds(self._pulse, cold=False)
            order = list(range(len(trials)))
            random.shuffle(order)
            taken = []
            for i in order:
                if _is_done(trials[i], protocol):
                    continue
                started(i)
                taken.append((i, self._sample(trials[i])))
            if extra and pulses and pulse > (1 + protocol.drift) * median(pulses):
                extra -= 1
                continue
            pulses.append(pulse)
            rounds -= 1
            for i, seconds in taken:
                trials[i].samples.append(seconds)
            yield pulse

    def _heat(
        self, trials: Sequence[Trial], seconds: float, started: Callable[[int], None]
    ) -> None:
        """Keep the device at work so long, but for calls that are :data:`SHORT`."""
        for i, trial in enumerate(trials):
            if seconds and trial.prepared is not None and trial.judged > SHORT:
                started(i)
                for _ in range(ceil(seconds / len(trials) / trial.judged)):
                    trial.prepared()
                self._buffers.report()  # waits, so that what hangs is the one that was started

    def _sample(self, trial: Trial) -> float:
        """Return the seconds of one call; a long one comes right after another, for the clock it
        leaves."""
        assert trial.prepared is not None
        if trial.judged > COOLING_CALL:
            trial.prepared()
        short = min(trial.samples, default=trial.judged) < SHORT
        return self._device.seconds(trial.prepared, GRAPH_CALLS if short else 1)

    # -- what a call may have done wrong ---------------------------------------------------

    def _poisoned_call(self, trial: Trial) -> float:
        """Return the seconds of a call on outputs that hold nothing right."""
        assert trial.prepared is not None
        for output in self._workload.outputs:
            self._buffers.poison(output)
        return self._device.seconds(trial.prepared)

    def _fault(self, trial: Trial, name: str) -> tuple[ErrorKind, str] | None:
        if wrong := self._wrong(trial, name):
            return wrong
        for check in self._problem.unchanged:
            check.call()
            if self._buffers.report()[0]:
                text = f"the kernel writes to its input {check.operand.name}"
                return ErrorKind.OUT_OF_BOUNDS, text
        sizes = {operand.name: operand.span_bytes for operand in self._workload.operands}
        places = [(name, self._buffers.addresses[name], size) for name, size in sizes.items()]
        if trial.workspace:
            places.append(("workspace", trial.workspace, trial.call.workspace_bytes))
        for name, address, size in places:
            for side, guard in (("before", address - GUARD), ("after", address + size)):
                if self._buffers.guard_is_damaged(guard):
                    return ErrorKind.OUT_OF_BOUNDS, f"the kernel writes {side} {name}"
        return None

    def _wrong(self, trial: Trial, name: str) -> tuple[ErrorKind, str] | None:
        """Find a wrong output, or a workspace that should have stayed zero and did not."""
        for output, compare in self._compare:
            compare()
            wrong, first = self._buffers.report()
            if wrong:
                return ErrorKind.WRONG, self._difference(output, first, wrong, name)
        zeroed = trial.call.workspace_zeroed
        if zeroed and np.frombuffer(self._device.read(trial.workspace, zeroed), np.uint8).any():
            return ErrorKind.WRONG, "the kernel leaves its workspace non-zero"
        return None

    def _difference(self, output: Array, first: int, wrong: int, name: str) -> str:
        bounds = oracle.allowed_operand(output)
        found = self._buffers.element(output, first)
        low, high = (self._buffers.element(bounds, first + i * output.size) for i in (0, 1))
        return (
            f"{output.name}{list(index_of(first, output))} is {found}, expected {low} to {high} "
            f"({wrong} of {output.size} elements wrong, {name})"
        )

    def array(self, operand: Array) -> np.ndarray:
        """Return a copy of one of the problem's arrays."""
        return self._buffers.read(operand)


def _is_done(trial: Trial, protocol: TimingProtocol) -> bool:
    enough = len(trial.samples) >= protocol.contender_samples
    return enough and sum(trial.samples) > protocol.budget


def check_oracle(device: Device) -> None:
    """Hold the kernels that judge to NumPy on this device; DeviceError if they disagree."""
    matmul = CHECKED.matmul
    assert matmul
    with MeasuringSession(device, CHECKED, seed=1, pulse_steps=1) as session:
        inputs = {o.name: session.array(o) for o in matmul.inputs}
        found = session.array(oracle.allowed_operand(matmul.output))
    drawn = all(np.std(array) > 0.5 for array in inputs.values())
    right = allowed(matmul, matmul.contract(inputs), inputs)
    if not drawn or not np.allclose(found, right, rtol=1e-6, atol=1e-6):
        raise DeviceError(f"{device.name} computes otherwise than NumPy")
