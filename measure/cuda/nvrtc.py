"""CUDA kernels to cubins: NVRTC in a pool of threads, a cache on disk, refusals with reasons."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from math import prod
from typing import Any

from tilewright.measure.cuda.compilation import FLAGS, Compilation, compile_cubin, compiler_version
from tilewright.measure.cuda.cubin import Cubin, read_cubin
from tilewright.measure.failures import compile_failure
from tilewright.measure.host.cache import CachedFile
from tilewright.measure.host.directories import RunDirectory
from tilewright.measure.interfaces import Built
from tilewright.measure.records.measurement import Candidate, ErrorKind
from tilewright.spaces.algebra.integers import round_up
from tilewright.spaces.cuda.intrinsics import device_text
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.errors import InputError
from tilewright.spaces.kernel import Call, Source

LEAST_BATCH = 16
PER_JOB = 3  # kernels of a batch: one takes several times as long as another to compile

_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
# ptxas: C7508 (setmaxnreg is ignored), C7510 and on (wgmma is serialised, waits are injected)
_LOSS = re.compile(r"\((C75\d\d)\) ([^\n]*)")


class NvrtcBuilder:
    """Builds for one CUDA target; no GPU or driver is needed.

    ``jobs`` kernels compile at a time, each within ``time_limit`` seconds. A cubin is kept in the
    user's cache under its text, flags and compiler; the paths handed out live until
    :meth:`close`, which may come from another thread and stops what is under way.

    A kernel that compiles but spills registers, whose ``setmaxnreg`` is ignored, whose ``wgmma``
    is serialised, or that cannot be launched for its registers or shared memory is ``REJECTED``,
    with its resources in ``info``.
    """

    def __init__(self, target: CudaTarget, jobs: int = 1, time_limit: float = 60.0) -> None:
        self._target, self._time_limit = target, time_limit
        self.batch = max(LEAST_BATCH, PER_JOB * jobs)
        self._version = compiler_version()
        self._toolchain = f"nvrtc {self._version}"
        self._directory = RunDirectory()
        self._threads = ThreadPoolExecutor(jobs, thread_name_prefix="nvrtc")
        self._closing = threading.Event()

    def build(self, candidates: Sequence[Candidate]) -> list[Built]:
        """Return the cubins in the order of ``candidates``; equal kernels are built once."""
        first = {candidate.kernel: candidate for candidate in reversed(candidates)}
        built = dict(zip(first, self._threads.map(self._build, first.values()), strict=True))
        return [replace(built[c.kernel], candidate=c) for c in candidates]

    def close(self) -> None:
        """Stop running compilations and remove the run's binaries. Idempotent."""
        self._closing.set()
        self._threads.shutdown()
        self._directory.close()

    def _build(self, candidate: Candidate) -> Built:
        start = time.thread_time()

        def failed(kind: ErrorKind, text: str, info: dict[str, Any] | None = None) -> Built:
            seconds = time.thread_time() - start
            return Built(candidate, None, seconds, kind, text, info, self._toolchain)

        source, call = candidate.kernel.source, candidate.kernel.call
        shared = max(launch.shared_bytes for launch in call.launches)
        if refusal := _too_much_shared(shared, self._target):
            return failed(ErrorKind.REJECTED, refusal)
        try:
            text = device_text(source.text) + source.text
        except InputError as error:  # an intrinsic that does not exist
            return failed(ErrorKind.COMPILE, str(error))
        try:
            compilation = self._compiled(text)
        except (InputError, OSError, RuntimeError) as error:  # of this machine: a full disk
            return failed(ErrorKind.COMPILER_LOST, f"cannot compile: {error}")
        if compilation.cubin is None:
            late = f"compiling took longer than {self._time_limit:g} s"
            words = late if compilation.stopped else compilation.log
            return failed(compile_failure(words, compilation.stopped), words)
        facts = [read_cubin(compilation.cubin, call.function(each)) for each in call.launches]
        info = _resources(facts, compilation.log, call, self._version)
        if refusal := _refusal(compilation.log, info, facts, call, self._target):
            return failed(ErrorKind.REJECTED, refusal, info)
        path = self._directory.path / f"{call.entry}-{source.digest[:16]}.cubin"
        try:
            path.write_bytes(compilation.cubin)
        except OSError as error:
            return failed(ErrorKind.COMPILER_LOST, f"cannot keep the cubin: {error.strerror}")
        seconds = time.thread_time() - start
        return Built(candidate, path, seconds, info=info, toolchain=self._toolchain)

    def _compiled(self, text: str) -> Compilation:
        """Return the cubin from the cache if it is there; only what succeeded is kept."""
        file = _cached(text, self._target, self._version)
        if (content := file.read()) is not None:
            return _unpacked(content)
        fresh = compile_cubin(text, self._target.name, self._time_limit, self._closing.is_set)
        if fresh.cubin is not None:
            with suppress(InputError):  # a full cache costs time, but no answer
                file.write(_packed(fresh.cubin, fresh.log))
        return fresh


def is_built(source: Source, target: CudaTarget) -> bool:
    """Tell whether a kernel's cubin is in the user's cache, so that building it needs no
    compiler."""
    try:
        text = device_text(source.text) + source.text
    except InputError:  # an intrinsic that does not exist
        return False
    return _cached(text, target, compiler_version()).read() is not None


def _cached(text: str, target: CudaTarget, version: str) -> CachedFile:
    """Return the file of the cubin of a text in the user's cache."""
    key = repr((text, target.name, FLAGS, (version, target.compiler_version)))
    return CachedFile("cubins", hashlib.sha256(key.encode()).hexdigest())


def _packed(cubin: bytes, log: str) -> bytes:
    """Return both as they are kept: the log's length in a line, the log, the cubin."""
    words = log.encode()
    return b"%d\n" % len(words) + words + cubin


def _unpacked(content: bytes) -> Compilation:
    length, _, rest = content.partition(b"\n")
    size = int(length)
    return Compilation(rest[size:], rest[:size].decode())


def _resources(facts: Sequence[Cubin], log: str, call: Call, version: str) -> dict[str, Any]:
    """Report a kernel's resources as JSON values for a record; bytes are per thread or block. For
    several launches: the most that any of them takes, and the code of all.
    """
    shared = zip(facts, call.launches, strict=True)
    return {
        "registers": max(f.registers for f in facts),
        "stack_bytes": max(f.stack_bytes for f in facts),
        "spill_bytes": sum(int(number) for pair in _SPILLS.findall(log) for number in pair),
        "shared_bytes": max(f.shared_bytes + launch.shared_bytes for f, launch in shared),
        "barriers": max(f.barriers for f in facts),
        "code_bytes": sum(len(f.code) for f in facts),
        "compiler": f"nvrtc {version}",
    }


def _refusal(
    log: str, info: dict[str, Any], facts: Sequence[Cubin], call: Call, target: CudaTarget
) -> str:
    """Say why a kernel that compiled is not worth running, or could not be launched; else empty."""
    if info["spill_bytes"]:
        return f"the kernel spills {info['spill_bytes']} bytes of registers"
    if loss := _LOSS.search(log):
        return f"the compiler says {loss.group(1)}: {loss.group(2).strip()}"
    registers = max(
        round_up(f.registers, 8) * prod(launch.block)
        for f, launch in zip(facts, call.launches, strict=True)
    )
    if registers > target.registers_per_multiprocessor:
        return (
            f"a block takes {registers} registers of {target.registers_per_multiprocessor} "
            "that a multiprocessor has"
        )
    return _too_much_shared(info["shared_bytes"], target)


def _too_much_shared(used: int, target: CudaTarget) -> str:
    if used <= target.shared_per_block:
        return ""
    return f"a block takes {used} bytes of shared memory of {target.shared_per_block} allowed"
