"""The CPU as a target: detected from the machine and its compiler, never assumed."""

from __future__ import annotations

import platform
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar

from tilewright.spaces.cpu.compiler import find_compiler
from tilewright.spaces.cpu.isa import detect_isa, has_bf16_dot, has_fma
from tilewright.spaces.cpu.machine import cache_bytes, core_count, cpu_model
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.settings import default_threads
from tilewright.spaces.target import NAMES, Target
from tilewright.spaces.validation.checks import whole
from tilewright.spaces.validation.limits import NAME, Flag, Text, Texts, Whole

if TYPE_CHECKING:
    from tilewright.spaces.workloads.workload import Workload

# -O2 suffices, for kernels spell out their vectors. The other flags let loops over square roots
# become vector instructions.
FLAGS = ("-O2", "-fno-math-errno", "-fno-trapping-math")
# GCC would keep elements that a later turn of a loop reads again in registers, and spill the sums
# of a tile, whose accumulators fill the registers.
FLAGS_OF = {"gcc": ("-fno-predictive-commoning",)}

# A value that is computed twice is the same number twice: only tw_fma contracts. These flags are no
# part of a target's description, so that earlier measurements on it stay comparable.
MEANING = ("-ffp-contract=off",)

THREADS = "threads="
MOST_DIGITS = 9  # of a number of threads that is read


_FASTEST_CLOCK = 8e9  # hertz; records with liquid nitrogen are at 9
_MOST_PIPES = 4  # vector operations of one kind that a core begins in a cycle
_FASTEST_MEMORY = 4e12  # bytes a second of a socket; high-bandwidth memory gives 1.6e12


@dataclass(frozen=True)
class CpuTarget(Target):
    """A CPU with its compiler. Sizes are in bytes; L1 and L2 are those of one core, L3 is what one
    core sees.

    A kernel may use ``threads`` threads. There are ``vector_registers`` of ``vector_bytes`` each.
    ``flags`` make code fast, and are part of what is measured, as the compiler is.
    """

    kind: ClassVar[str] = "cpu"
    built_alike: ClassVar[tuple[str, ...]] = ("architecture", "isa", "threads")

    model: Annotated[str, NAME]
    architecture: Annotated[str, NAME]
    isa: Annotated[str, NAME]
    vector_bytes: Annotated[int, Whole(8, 256, doubling=True)]
    vector_registers: Annotated[int, Whole(8, 256)]
    fma: Annotated[bool, Flag()]
    bf16_dot: Annotated[bool, Flag()]
    cores: Annotated[int, Whole(1, 65536)]
    threads: Annotated[int, Whole(1, 65536)]
    l1_bytes: Annotated[int, Whole(4 << 10, 1 << 30)]
    l2_bytes: Annotated[int, Whole(32 << 10, 1 << 40)]
    l3_bytes: Annotated[int, Whole(32 << 10, 1 << 40)]
    compiler: Annotated[str, NAME]
    compiler_version: Annotated[str, NAME]
    flags: Annotated[tuple[str, ...], Texts(64, Text(256))]

    @property
    def compiler_flags(self) -> tuple[str, ...]:
        """The flags for the compiler: ``flags``, and those that define the meaning of kernels."""
        return (*self.flags, *MEANING)

    @property
    def summary(self) -> str:
        """One line about the target for people."""
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        threads += " of 1 core" if self.cores == 1 else f" of {self.cores} cores"
        compiler = f"{self.compiler} {self.compiler_version}"
        named = "" if self.threads == 1 else f" ({self.text})"
        return f"cpu {self.model}, {self.isa}, {threads}, {compiler}{named}"

    @property
    def text(self) -> str:
        """The name of the target on its machine; see :func:`spaces.target.detect_target`."""
        return "cpu" if self.threads == 1 else f"cpu:{THREADS}{self.threads}"

    def differs_in_threads(self, other: Target) -> bool:
        """Tell whether two targets differ in threads alone; see :class:`Target`."""
        same = isinstance(other, CpuTarget) and replace(other, threads=self.threads) == self
        return same and other != self

    def least_seconds(self, workload: Workload) -> float:
        """Return the least seconds that any kernel of this workload can take; see
        :class:`Target`."""
        cycles = _FASTEST_CLOCK * self.threads
        narrowest = min(dtype(name).bytes for name in workload.arithmetic)
        flops = cycles * _MOST_PIPES * 2 * self.vector_bytes / narrowest
        caches = self.threads * (self.l1_bytes + self.l2_bytes + self.l3_bytes)
        moved = workload.least_bytes
        return max(
            workload.flops / flops,
            moved / (cycles * _MOST_PIPES * self.vector_bytes),
            (moved - caches) / _FASTEST_MEMORY,
        )

    @property
    def even_workers(self) -> tuple[int, ...]:
        """The numbers of workers that share the threads evenly: the divisors of ``threads``."""
        return tuple(n for n in range(1, self.threads + 1) if self.threads % n == 0)

    def lanes(self, element_bytes: int) -> int:
        """Return the number of elements of that size in one vector register."""
        return self.vector_bytes // element_bytes


VARIANTS: tuple[str, ...] = ()
"""The variants of a CPU: none, for there is one, this machine's, with any number of threads."""


def detect(variant: str, threads: int | None) -> CpuTarget:
    """Return this machine as a target for kernels of so many threads.

    The number is in ``variant``, as in ``threads=2``, or in ``threads``, else that of the settings.
    Raises :class:`InputError` for any other variant, or if the two numbers differ.
    """
    named = named_threads(variant)
    if None not in (named, threads) and named != threads:
        raise InputError(f"the target cpu:{variant}, but threads={shown(threads)}; say one of them")
    given = next((number for number in (named, threads) if number is not None), None)
    return detect_cpu(default_threads() if given is None else given)


def named_threads(variant: str) -> int | None:
    """Return the number in a text such as ``threads=2``; None for an empty text.

    Raises :class:`InputError` for any other text.
    """
    if not variant:
        return None
    number = variant.removeprefix(THREADS)
    decimal = number.isascii() and number.isdecimal() and len(number) <= MOST_DIGITS
    if number == variant or not decimal:
        raise InputError(f"unknown target {shown(f'cpu:{variant}')}; allowed: {NAMES}")
    return whole("threads", int(number), 1)


def detect_cpu(threads: int = 1) -> CpuTarget:
    """Return this machine as a target for kernels of ``threads`` threads.

    Raises :class:`InputError` if ``threads`` is not between 1 and the number of cores, or if no C
    compiler is found.
    """
    cores = core_count()
    threads = whole("threads", threads, 1, cores)
    compiler = find_compiler()
    isa = detect_isa(compiler.macros)
    native = (compiler.native,) if compiler.native else ()
    return CpuTarget(
        model=cpu_model(),
        architecture=platform.machine(),
        isa=isa.name,
        vector_bytes=isa.vector_bytes,
        vector_registers=isa.vector_registers,
        fma=has_fma(compiler.macros),
        bf16_dot=has_bf16_dot(compiler.macros),
        cores=cores,
        threads=threads,
        l1_bytes=cache_bytes(1),
        l2_bytes=cache_bytes(2),
        l3_bytes=cache_bytes(3),
        compiler=compiler.name,
        compiler_version=compiler.version,
        flags=(*FLAGS, *FLAGS_OF.get(compiler.name, ()), *native),
    )
