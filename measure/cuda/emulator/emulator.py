"""One call of a kernel, a process for each of its launches: what came out, or what went wrong."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tilewright.measure.cpu.compilation import Compilations, in_groups
from tilewright.measure.cpu.keeper import supervised
from tilewright.measure.cuda.emulator.memory import Memory
from tilewright.measure.cuda.emulator.toolchain import CompileError, compile_library, process
from tilewright.measure.host.directories import RunDirectory
from tilewright.measure.records.measurement import ErrorKind
from tilewright.spaces.cuda.tensor_map import TensorMapSpec
from tilewright.spaces.kernel import Buffer, Kernel, Launch

_FAULT = 3  # exit status of a reported fault
_ORDER = ("float64", "float32", "tfloat32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
_KINDS = {name: i for i, name in enumerate((*_ORDER, "int32", "int8"))}  # runtime.h: enum Kind


@dataclass(frozen=True)
class Interleaving:
    """Says when asynchronous effects land and which thread goes next.

    ``mode`` is ``eager`` (at once, in order), ``lazy`` (as late as the PTX ISA allows) or
    ``random`` by ``seed``, where odd seeds never delay loads and seeds with bit 1 always delay
    products.
    """

    mode: str
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.mode} {self.seed}" if self.mode == "random" else self.mode


INTERLEAVINGS = (
    Interleaving("eager"),
    Interleaving("lazy"),
    Interleaving("random", 1),
    Interleaving("random", 2),
)
"""The ones that together find the usual mistakes."""


@dataclass(frozen=True)
class Emulated:
    """The outcome of a run: an array for each output by its name, or a fault in words.

    ``conflicts`` is by how much bank conflicts lengthen the kernel's accesses to shared memory:
    wavefronts over their least number, less one. Only accesses by whole warps count, and they
    are counted in eager mode; TMA and wgmma have none with the swizzles they are made for.
    """

    outputs: Mapping[str, np.ndarray] = field(default_factory=dict)
    conflicts: float = 0.0
    error_kind: ErrorKind | None = None
    error_text: str = ""

    @property
    def output(self) -> np.ndarray | None:
        """The first output; None after a fault."""
        return next(iter(self.outputs.values()), None)


class Emulator:
    """Compiles and runs kernels; a context manager that owns a folder of libraries.

    ``batch`` kernels go into one library when :meth:`build` is given many, which costs far less
    than one each. At most ``resident`` clusters are in flight at once; blocks that race with each
    other must be for it to show.
    """

    def __init__(self, batch: int = 16, resident: int = 32) -> None:
        self._batch = batch
        self._resident = resident
        self._folder = RunDirectory()
        self._compilations = Compilations()
        self._libraries: dict[tuple[str, str], Path] = {}
        self._errors: dict[tuple[str, str], CompileError] = {}
        self._ended = False

    def __enter__(self) -> Emulator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def end(self) -> None:
        """End compilers, and run nothing any more: what other threads ask for is lost."""
        self._ended = True
        self._compilations.close()

    def close(self) -> None:
        """:meth:`end`, and remove the libraries, which nobody may use by then. Idempotent."""
        self.end()
        self._folder.close()

    def build(self, kernels: Sequence[Kernel]) -> None:
        """Compile ``kernels`` ahead of :meth:`run`; a faulty one shows when it is run."""
        new = {_key(kernel): kernel for kernel in kernels if not self._known(_key(kernel))}
        for group in in_groups(new.values(), self._batch):
            self._compile(group)

    def run(
        self,
        kernel: Kernel,
        inputs: Mapping[str, np.ndarray],
        interleaving: Interleaving = INTERLEAVINGS[0],
        timeout: float = 120.0,
    ) -> Emulated:
        """Call ``kernel`` once on ``inputs`` (by operand name, in the operands' memory order).

        Outputs and, unless it is to be zeroed, the workspace are poisoned with NaN first.
        ``timeout`` is in seconds of wall time.
        """
        if not kernel.call.launches:
            raise ValueError(f"CUDA kernel {kernel.call.entry} has no launch")
        self.build([kernel])
        if self._ended:
            return Emulated(error_kind=ErrorKind.WORKER_LOST, error_text="the emulator was ended")
        if error := self._errors.get(_key(kernel)):
            return Emulated(error_kind=error.kind, error_text=error.text)
        least = wavefronts = 0
        with Memory(kernel.call, inputs) as memory:
            for launch in kernel.call.launches:
                request = [
                    f"library {self._libraries[_key(kernel)]}",
                    f"entry {kernel.call.function(launch)}",
                    *_launch_lines(launch, kernel.call.buffers(launch), memory),
                    *([f"extent {kernel.call.extent}"] if kernel.call.open_axis else []),
                    f"mode {interleaving.mode}",
                    f"seed {interleaving.seed}",
                    f"resident {self._resident}",
                ]
                report = _supervise("\n".join(request) + "\n", memory.file, timeout)
                if isinstance(report, Emulated):
                    return report
                _, fewest, needed = map(int, report.split())
                least, wavefronts = least + fewest, wavefronts + needed
            if not memory.workspace_is_zero:
                text = "the kernel leaves its workspace non-zero"
                return Emulated(error_kind=ErrorKind.WRONG, error_text=text)
            return Emulated(memory.outputs, wavefronts / least - 1 if least else 0.0)

    def _known(self, key: tuple[str, str]) -> bool:
        return key in self._libraries or key in self._errors

    def _compile(self, kernels: Sequence[Kernel]) -> None:
        try:
            library = compile_library(kernels, self._folder.path, self._compilations)
        except CompileError as error:
            if len(kernels) == 1:
                self._errors[_key(kernels[0])] = error
                return
            for kernel in kernels:
                self._compile([kernel])
        else:
            self._libraries.update({_key(kernel): library for kernel in kernels})


def _key(kernel: Kernel) -> tuple[str, str]:
    return kernel.call.entry, kernel.source.digest


def _launch_lines(launch: Launch, buffers: Sequence[Buffer], memory: Memory) -> Iterator[str]:
    for name, extents in (
        ("grid", launch.grid),
        ("block", launch.block),
        ("cluster", launch.cluster),
    ):
        yield f"{name} {' '.join(map(str, extents))}"
    yield f"shared {launch.shared_bytes}"
    yield f"early {int(launch.early)}"
    yield from memory.lines(buffers)
    places = {buffer.name: place for place, buffer in enumerate(buffers)}
    for spec in launch.tensor_maps:
        yield _tensor_line(places[spec.operand], spec)


def _tensor_line(buffer: int, spec: TensorMapSpec) -> str:
    numbers = (
        buffer,
        spec.rank,
        spec.element_bytes,
        _KINDS[spec.dtype],
        spec.swizzle,
        len(spec.steps),
        *spec.dims,
        *spec.strides,
        *spec.box,
        *spec.lower,
        *spec.upper,
        *spec.steps,
    )
    return f"tensor {' '.join(map(str, numbers))}"


def _supervise(request: str, file: int, timeout: float) -> str | Emulated:
    """Run the emulator's process; its line of counts if it ended well, else the fault."""
    try:
        done = subprocess.run(
            supervised([process()]),
            input=request,
            capture_output=True,
            text=True,
            timeout=timeout,
            pass_fds=(file,),
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        text = f"the emulated kernel ran longer than {timeout:g} s"
        return Emulated(error_kind=ErrorKind.TIMEOUT, error_text=text)
    kind, _, text = done.stdout.partition("\n")
    if done.returncode == 0:
        return text
    if done.returncode == _FAULT:
        return Emulated(error_kind=ErrorKind(kind), error_text=text.strip())
    if done.returncode > 0:
        raise RuntimeError(f"the emulator refused a launch: {done.stderr.strip()}")
    text = f"the emulated kernel ended by signal {-done.returncode}"
    return Emulated(error_kind=ErrorKind.CRASH, error_text=text)
