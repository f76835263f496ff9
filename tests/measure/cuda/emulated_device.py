"""A device for the runner's child that is no GPU: kernels run on the emulator.

What stands for a cubin is the kernel's text. Time is what a comment in it says:
``// takes 0.001`` seconds, ``// hangs``, or ``// kills`` (the process, as a driver's bug might);
``// is refused`` and ``// is not launched`` are what a driver may do to it.
A kernel runs twice and whenever something was filled since; ``// returns from run 3`` and
``// wrong from run 3`` say what becomes of it.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np

from tilewright.measure.cpu.problem import array_in
from tilewright.measure.cuda.device import DeviceError, LoadError, MemoryShortError, Prepared
from tilewright.measure.cuda.emulator import Emulator
from tilewright.measure.interfaces import Built
from tilewright.measure.records.measurement import Candidate
from tilewright.spaces.kernel import WORKSPACE, Call, Kernel, Source

LIBRARIES = "TILEWRIGHT_TEST_LIBRARIES"
BROKEN = "TILEWRIGHT_TEST_NO_DEVICE"
HANGING = "TILEWRIGHT_TEST_HANGING"  # a file that is made before a kernel hangs
MEMORY = 1 << 30
MEMORY_LEFT = "TILEWRIGHT_TEST_MEMORY_LEFT"  # bytes for any one array


def open_device(ordinal: int) -> EmulatedDevice:
    """In place of ``measure.cuda.driver.open_device``."""
    if os.environ.get(BROKEN):
        raise DeviceError(os.environ[BROKEN])
    return EmulatedDevice()


def open_nothing(ordinal: int) -> EmulatedDevice:
    """Where no GPU has this number."""
    raise DeviceError(f"there is no GPU {ordinal}")


def pack(kernel: Kernel) -> bytes:
    """What stands for a cubin."""
    return json.dumps(asdict(kernel.source)).encode()


class PackingBuilder:
    """Keeps what another builder accepts, but puts the text in the cubin's place."""

    def __init__(self, builder) -> None:
        self._builder = builder
        self.batch = builder.batch

    def build(self, candidates: list[Candidate]) -> list[Built]:
        built = self._builder.build(candidates)
        for b in built:
            if b.binary is not None:
                b.binary.write_bytes(pack(b.candidate.kernel))
        return built

    def close(self) -> None:
        self._builder.close()


class _Folder:
    """A folder for the emulator's libraries that outlives the process, to compile once."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def close(self) -> None:
        pass


class EmulatedDevice:
    """See ``measure.cuda.device.Device``."""

    name = "NVIDIA H200"
    architecture = "sm_90a"
    multiprocessors = 2

    def __init__(self) -> None:
        self._emulator = Emulator(resident=4)  # what races is shown elsewhere
        if folder := os.environ.get(LIBRARIES):
            self._emulator._folder.close()
            self._emulator._folder = _Folder(folder)
        self._memory: dict[int, np.ndarray] = {}
        self._next = 1 << 20
        self._filled = False

    def allocate(self, size: int) -> int:
        if size > int(os.environ.get(MEMORY_LEFT, MEMORY)):
            raise MemoryShortError("CUDA_ERROR_OUT_OF_MEMORY: out of memory")
        address = self._next
        self._next += (size + 511) // 256 * 256
        self._memory[address] = np.zeros(size, np.uint8)
        return address

    def free(self, address: int) -> None:
        del self._memory[address]

    def fill(self, address: int, byte: int, size: int) -> None:
        self._filled = True
        self._view(address, size)[:] = byte

    def write(self, address: int, data: bytes) -> None:
        self._view(address, len(data))[:] = np.frombuffer(data, np.uint8)

    def read(self, address: int, size: int) -> bytes:
        return self._view(address, size).tobytes()

    def bind(self, call: Call, code: Path | Source, addresses: Mapping[str, int]) -> Prepared:
        source = code if isinstance(code, Source) else Source(**json.loads(code.read_bytes()))
        kernel = Kernel(source, call)
        if "// is refused" in kernel.source.body:
            raise LoadError("CUDA_ERROR_INVALID_IMAGE: device kernel image is invalid")

        def prepared() -> None:
            if "// is not launched" in kernel.source.body:
                raise LoadError("CUDA_ERROR_INVALID_VALUE: invalid argument")
            prepared.runs += 1
            if not _from_run(prepared, "returns"):
                self._run(kernel, addresses)
            if _from_run(prepared, "wrong"):
                self._array(kernel.call.arrays[-1], addresses)[0, 1] += 1

        prepared.source = source.body
        prepared.runs = 0
        return prepared

    def seconds(self, call: Prepared, calls: int = 1, cold: bool = True) -> float:
        if call.runs < 2 or self._filled:
            call()
            self._filled = False
        if "// hangs" in call.source:
            if sign := os.environ.get(HANGING):
                Path(sign).touch()
            time.sleep(1000)
        if "// kills" in call.source:
            os.kill(os.getpid(), signal.SIGSEGV)
        told = re.search(r"// takes (\S+)", call.source)
        return (float(told[1]) if told else 1.5e-5) * random.uniform(0.99, 1.01)

    def _run(self, kernel: Kernel, addresses: Mapping[str, int]) -> None:
        inputs, output = kernel.call.read, kernel.call.written[-1]
        arrays = {o.name: self._array(o, addresses) for o in inputs}
        done = self._emulator.run(kernel, arrays)
        if done.error_kind is not None:
            raise DeviceError(f"CUDA_ERROR_ILLEGAL_ADDRESS: {done.error_text}")
        for written in kernel.call.written:
            self._array(written, addresses)[...] = done.outputs[written.name]
        if "// writes beside its output" in kernel.source.body:
            self._view(addresses[output.name] + output.bytes, 1)[:] = 1
        if "// leaves its workspace" in kernel.source.body:
            self._view(addresses[WORKSPACE] + 1, 1)[:] = 7
        if "// writes to its input" in kernel.source.body:
            self._view(addresses[inputs[1].name] + 40, 1)[:] += 1

    def _array(self, operand, addresses: Mapping[str, int]) -> np.ndarray:
        return array_in(self._view(addresses[operand.name], operand.span_bytes), operand)

    def _view(self, address: int, size: int) -> np.ndarray:
        base = max(start for start in self._memory if start <= address)
        view = self._memory[base][address - base : address - base + size]
        assert len(view) == size, "out of bounds"
        return view


def _from_run(call: Prepared, what: str) -> bool:
    told = re.search(rf"// {what} from run (\d+)", call.source)
    return told is not None and call.runs >= int(told[1])
