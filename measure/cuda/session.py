"""One workload on a device: its buffers, and how candidates are judged and timed on them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path
from statistics import median

import numpy as np

from measure.cpu.problem import index_of
from measure.cuda import oracle
from measure.cuda.device import Call, Device, DeviceError, LoadError, MemoryShortError
from measure.inputs import ATTEMPTS
from measure.records.measurement import ErrorKind
from measure.telling import is_telling, telling
from measure.timing import TimingProtocol
from spaces.array import Array
from spaces.contraction import Contraction
from spaces.kernel import Kernel
from spaces.numerics.allowance import allowed, bounds_dtype
from spaces.operators import matmul

GUARD = 4096  # bytes before and after every buffer that no kernel may touch
GUARD_BYTE = 0xA5
POISON = 0xFF  # this byte repeated is NaN in every floating-point type
INTEGER_POISON = 0x7F
SHORT, GRAPH_CALLS = 20e-6, 20  # shorter calls are timed by a graph of so many
COOLING_CALL = 50e-6  # while L2 is flushed between calls this short, the device cools
PULSE_STEPS = 8192
BLOCKS = 4  # blocks per multiprocessor of the kernels that walk over arrays
CHECKED = matmul(67, 45, 33, b="col")


@dataclass
class Trial:
    """One candidate and what has become known of it; ``samples`` are seconds of one call."""

    kernel: Kernel
    binary: Path
    call: Call | None = None
    workspace: int = 0
    judged: float = 0.0  # seconds of the last call while it was judged
    samples: list[float] = field(default_factory=list)
    slow: bool = False
    error_kind: ErrorKind | None = None
    error_text: str = ""

    def refuse(self, error: LoadError) -> None:
        """Note that the device does not take the candidate, so that none of it ran."""
        is_short = isinstance(error, MemoryShortError)
        self.call, self.error_text = None, str(error)
        self.error_kind = ErrorKind.MEMORY if is_short else ErrorKind.REJECTED


class Session:
    """The problem of one workload in device memory.

    Inputs are random by ``seed`` and telling (:mod:`measure.telling`); what is allowed follows from
    their float64 product; both are made on the device (:mod:`measure.cuda.oracle`). A context
    manager: its memory lives within it.
    """

    def __init__(
        self, device: Device, workload: Contraction, seed: int, pulse_steps: int = PULSE_STEPS
    ) -> None:
        self._device, self._workload, self._telling = device, workload, telling(workload)
        self._inputs = workload.inputs
        self._held: list[int] = []
        operands = (*workload.operands, oracle.allowed_operand(workload), oracle.SEED)
        self._addresses = {operand.name: self._guarded(operand.bytes) for operand in operands}
        blocks = BLOCKS * device.multiprocessors
        self._report_bytes = oracle.report(blocks).bytes
        self._addresses[oracle.REPORT] = self._guarded(self._report_bytes)
        self._draw(seed, blocks)
        self._bound(oracle.expect(workload, self._telling.scale))()
        self._unchanged = [
            (o, self._bound(oracle.changed(o, blocks, self._scale(o)))) for o in self._inputs
        ]
        self._compare = self._bound(oracle.compare(workload, blocks))
        pulse = oracle.pulse(device.multiprocessors, pulse_steps)
        self._addresses[oracle.OUT] = self._guarded(pulse.arguments[0].bytes)
        self._pulse = self._bound(pulse)
        self._pulse()
        device.read(self._addresses[oracle.REPORT], 8)  # waits, so that later faults are others'

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(DeviceError):  # of a device that is lost, memory and all
            for address in self._held:
                self._device.free(address)

    def load(self, trial: Trial) -> None:
        """Make the candidate's launch; one that the device does not take gets an error."""
        kernel = trial.kernel
        addresses = dict(self._addresses)
        try:
            if kernel.workspace_bytes:
                trial.workspace = addresses["workspace"] = self._guarded(kernel.workspace_bytes)
                self._device.fill(trial.workspace, POISON, kernel.workspace_bytes)
                self._device.fill(trial.workspace, 0, kernel.workspace_zeroed)
            trial.call = self._device.bind(kernel, trial.binary, addresses)
        except LoadError as error:
            trial.refuse(error)

    def judge(self, trial: Trial, protocol: TimingProtocol, best: float) -> None:
        """Run the candidate on a poisoned output, twice if it is fast, and look at what it left.

        Its last call is timed, for the driver loads a kernel when it is first called: one far
        slower than ``best`` (seconds) is marked as slow.
        """
        assert trial.call is not None
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
            if seconds and trial.call is not None and trial.judged > SHORT:
                started(i)
                for _ in range(ceil(seconds / len(trials) / trial.judged)):
                    trial.call()
                self._report()  # waits, so that a call that hangs is the one that was started

    def _sample(self, trial: Trial) -> float:
        """Seconds of one call; a long one comes right after another, for the clock it leaves."""
        assert trial.call is not None
        if trial.judged > COOLING_CALL:
            trial.call()
        short = min(trial.samples, default=trial.judged) < SHORT
        return self._device.seconds(trial.call, GRAPH_CALLS if short else 1)

    # -- what a call may have done wrong ---------------------------------------------------

    def _poisoned_call(self, trial: Trial) -> float:
        """Seconds of a call on an output that holds nothing right."""
        assert trial.call is not None
        output = self._workload.output
        poison = INTEGER_POISON if output.element.is_integer else POISON
        self._device.fill(self._addresses[output.name], poison, output.bytes)
        return self._device.seconds(trial.call)

    def _fault(self, trial: Trial, name: str) -> tuple[ErrorKind, str] | None:
        if wrong := self._wrong(trial, name):
            return wrong
        for operand, call in self._unchanged:
            call()
            if self._report()[0]:
                return ErrorKind.OUT_OF_BOUNDS, f"the kernel writes to its input {operand.name}"
        sizes = {operand.name: operand.bytes for operand in self._workload.operands}
        places = [(name, self._addresses[name], size) for name, size in sizes.items()]
        if trial.workspace:
            places.append(("workspace", trial.workspace, trial.kernel.workspace_bytes))
        for name, address, size in places:
            for side, guard in (("before", address - GUARD), ("after", address + size)):
                if self._device.read(guard, GUARD) != bytes([GUARD_BYTE]) * GUARD:
                    return ErrorKind.OUT_OF_BOUNDS, f"the kernel writes {side} {name}"
        return None

    def _wrong(self, trial: Trial, name: str) -> tuple[ErrorKind, str] | None:
        """What is wrong with the output, or with a workspace that is to stay zero."""
        output = self._workload.output
        self._compare()
        wrong, first = self._report()
        if wrong:
            place = list(index_of(first, output))
            found = self._element(self._addresses[output.name], output, first)
            bounds = replace(output, dtype=bounds_dtype(output).name)
            start = self._addresses[oracle.ALLOWED]
            low, high = (self._element(start + i * bounds.bytes, bounds, first) for i in (0, 1))
            return ErrorKind.WRONG, (
                f"{output.name}{place} is {found}, expected {low} to {high} "
                f"({wrong} of {output.size} elements wrong, {name})"
            )
        zeroed = trial.kernel.workspace_zeroed
        if zeroed and np.frombuffer(self._device.read(trial.workspace, zeroed), np.uint8).any():
            return ErrorKind.WRONG, "the kernel leaves its workspace non-zero"
        return None

    def array(self, operand: Array) -> np.ndarray:
        """A copy of one of the problem's arrays."""
        data = self._device.read(self._addresses[operand.name], operand.bytes)
        shape = [operand.shape[dimension] for dimension in operand.order]
        ordered = np.frombuffer(data, operand.element.numpy).reshape(shape)
        return ordered.transpose(np.argsort(operand.order))

    def _report(self) -> tuple[int, int]:
        address = self._addresses[oracle.REPORT]
        return oracle.count_and_first(self._device.read(address, self._report_bytes))

    def _element(self, address: int, operand: Array, position: int) -> float:
        size = operand.element.bytes
        data = self._device.read(address + size * position, size)
        return float(np.frombuffer(data, operand.element.numpy)[0])

    # -- inputs ----------------------------------------------------------------------------

    def _draw(self, seed: int, blocks: int) -> None:
        """Fill the inputs, of a seed from ``seed`` on that makes them telling."""
        fills = [self._bound(oracle.fill(o, blocks, self._scale(o))) for o in self._inputs]
        for attempt in range(ATTEMPTS):
            own = (seed + attempt) % 2**31
            self._device.write(self._addresses[oracle.SEED.name], own.to_bytes(4, "little"))
            for fill in fills:
                fill()
            if self._telling.is_sure(self._workload):
                return
            inputs = {operand.name: self.array(operand) for operand in self._inputs}
            if is_telling(self._workload, inputs, self._telling.scale):
                return

    def _scale(self, operand: Array) -> float:
        return self._telling.scale if operand == self._inputs[0] else 1.0

    # -- memory ----------------------------------------------------------------------------

    def _guarded(self, size: int) -> int:
        base = self._device.allocate(size + 2 * GUARD)
        self._held.append(base)
        self._device.fill(base, GUARD_BYTE, size + 2 * GUARD)
        return base + GUARD

    def _bound(self, kernel: Kernel) -> Call:
        return self._device.bind(kernel, None, self._addresses)


def _is_done(trial: Trial, protocol: TimingProtocol) -> bool:
    enough = len(trial.samples) >= protocol.contender_samples
    return enough and sum(trial.samples) > protocol.budget


def check_oracle(device: Device) -> None:
    """Hold the kernels that judge to NumPy on this device; DeviceError if they disagree."""
    workload = CHECKED
    with Session(device, workload, seed=1, pulse_steps=1) as session:
        inputs = {o.name: session.array(o) for o in workload.inputs}
        found = session.array(oracle.allowed_operand(workload))
    drawn = all(np.std(array) > 0.5 for array in inputs.values())
    right = allowed(workload, workload.contract(inputs), inputs)
    if not drawn or not np.allclose(found, right, rtol=1e-6, atol=1e-6):
        raise DeviceError(f"{device.name} computes otherwise than NumPy")
