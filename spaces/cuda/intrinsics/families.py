"""Matrix instructions as intrinsics: two large families, generated as kernels use them.

Shapes, operand types and fragments are those of the PTX ISA 8.x, sections "Matrix multiply-
accumulate operation using mma instruction" and "Asynchronous Warpgroup Level Matrix Multiply-
Accumulate Instructions".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.spaces.errors import InputError

ELEMENT_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8}
"""The types of A and B, and their bits in registers and shared memory."""

_FLOAT8 = ("e4m3", "e5m2")

# (D, A, B), the K of each mma.sync; wgmma's K is always 256 bits of A
_OPERANDS: dict[tuple[str, str, str], tuple[int, ...]] = {
    ("f32", "f16", "f16"): (8, 16),
    ("f16", "f16", "f16"): (8, 16),
    ("f32", "bf16", "bf16"): (8, 16),
    ("f32", "tf32", "tf32"): (4, 8),
    ("s32", "s8", "s8"): (16, 32),
    **{("f32", a, b): (32,) for a in _FLOAT8 for b in _FLOAT8},
}

_REGISTER = {"f32": ("float", "f"), "s32": ("i32", "r"), "f16": ("u32", "r")}

_MMA = re.compile(r"\bmma_m16n8k(\d+)_([a-z0-9]+)_([a-z0-9]+)_([a-z0-9]+)\b")
_WGMMA = re.compile(
    r"\bwgmma_m64n(\d+)k(\d+)_([a-z0-9]+)_([a-z0-9]+)_([a-z0-9]+)_(ss|rs)(?:_([nt])([nt]))?\b"
)


@dataclass(frozen=True)
class Mma:
    """One warp-wide ``mma.sync``: D[16, 8] += A[16, K] B[K, 8]."""

    k: int
    d: str
    a: str
    b: str

    def __post_init__(self) -> None:
        if self.k not in _OPERANDS.get((self.d, self.a, self.b), ()):
            raise InputError(f"there is no intrinsic {self.name}; see spaces/cuda/intrinsics")

    @property
    def name(self) -> str:
        """The name within the namespace ``tw``."""
        return f"mma_m16n8k{self.k}_{self.d}_{self.a}_{self.b}"

    @property
    def a_registers(self) -> int:
        """Registers (32 bits) of A in each lane."""
        return 16 * self.k * ELEMENT_BITS[self.a] // 1024

    @property
    def b_registers(self) -> int:
        """Registers (32 bits) of B in each lane."""
        return 8 * self.k * ELEMENT_BITS[self.b] // 1024

    @property
    def d_registers(self) -> int:
        """Registers of D in each lane: 2 of pairs for f16, 4 otherwise."""
        return 2 if self.d == "f16" else 4

    @property
    def signature(self) -> str:
        """The C declaration without the return type."""
        return (
            f"{self.name}({_REGISTER[self.d][0]} (&d)[{self.d_registers}], "
            f"const u32 (&a)[{self.a_registers}], const u32 (&b)[{self.b_registers}])"
        )

    @property
    def plus_signature(self) -> str:
        """The C declaration of the form that adds the product to another C matrix."""
        kind = _REGISTER[self.d][0]
        return f"{self.signature[:-1]}, const {kind} (&c)[{self.d_registers}])"

    def device(self) -> str:
        """Return both definitions as inline PTX; the compiler may move the one with four
        operands."""
        constraint = _REGISTER[self.d][1]
        d, a, b, c = _numbered(
            self.d_registers, self.a_registers, self.b_registers, self.d_registers
        )
        inputs = [_bound("r", "a", self.a_registers), _bound("r", "b", self.b_registers)]
        kinds = f"{self.d}.{self.a}.{self.b}.{self.d}"
        instruction = f"mma.sync.aligned.m16n8k{self.k}.row.col.{kinds} {{{d}}}, {{{a}}}, {{{b}}}"
        added = _bound(constraint, "c", self.d_registers)
        return (
            f"TW_INLINE void {self.signature} {{\n"
            f'  asm volatile("{instruction}, {{{d}}};"\n'
            f"    : {_bound('+' + constraint, 'd', self.d_registers)}\n"
            f"    : {', '.join(inputs)});\n}}\n"
            f"TW_INLINE void {self.plus_signature} {{\n"
            f'  asm("{instruction}, {{{c}}};"\n'
            f"    : {_bound('=' + constraint, 'd', self.d_registers)}\n"
            f"    : {', '.join([*inputs, added])});\n}}"
        )

    def host(self) -> str:
        """Return both definitions as calls of the emulator."""
        count = self.d_registers
        return (
            f"TW_INLINE void {self.signature} {{ "
            f"emulator::mma({_kinds(self.d, self.a, self.b)}, {self.k}, d, a, b); }}\n"
            f"TW_INLINE void {self.plus_signature} {{ "
            f"for (int i = 0; i < {count}; i++) d[i] = c[i]; "
            f"{self.name}(d, a, b); }}"
        )


@dataclass(frozen=True)
class Wgmma:
    """One asynchronous warpgroup-wide ``wgmma``: D[64, N] = A[64, K] B[K, N] (+ D)."""

    n: int
    k: int
    d: str
    a: str
    b: str
    source: str  # ss: A in shared memory; rs: A in registers
    majors: str  # of A and B: n for K-major, t for M/N-major; empty means nn

    def __post_init__(self) -> None:
        sixteen = ELEMENT_BITS.get(self.a) == 16
        if (
            (self.d, self.a, self.b) not in _OPERANDS
            or self.n not in _columns(self.a)
            or self.k * ELEMENT_BITS[self.a] != 256
            or (self.majors and not sixteen)
            or (self.source == "rs" and self.majors.startswith("t"))
        ):
            raise InputError(f"there is no intrinsic {self.name}; see spaces/cuda/intrinsics")

    @property
    def name(self) -> str:
        """The name within the namespace ``tw``."""
        base = f"wgmma_m64n{self.n}k{self.k}_{self.d}_{self.a}_{self.b}_{self.source}"
        return f"{base}_{self.majors}" if self.majors else base

    @property
    def transposed(self) -> tuple[int, int]:
        """1 for each of A and B that is M/N-major, else 0."""
        return int(self.majors[:1] == "t"), int(self.majors[1:] == "t")

    @property
    def d_registers(self) -> int:
        """Registers of D in each lane."""
        return self.n // 4 if self.d == "f16" else self.n // 2

    @property
    def signature(self) -> str:
        """The C declaration without the return type."""
        a = "u64 a" if self.source == "ss" else "const u32 (&a)[4]"
        d = f"{_REGISTER[self.d][0]} (&d)[{self.d_registers}]"
        return f"{self.name}({d}, {a}, u64 b, int accumulate)"

    def device(self) -> str:
        """Return the definition as inline PTX."""
        a_registers = 1 if self.source == "ss" else 4
        d, a, b, flag = _numbered(self.d_registers, a_registers, 1, 1)
        a_text = a if self.source == "ss" else f"{{{a}}}"
        a_bound = '"l"(a)' if self.source == "ss" else _bound("r", "a", 4)
        scales = "" if self.a == "s8" else ", 1, 1"
        if ELEMENT_BITS[self.a] == 16:
            flags = self.transposed if self.source == "ss" else self.transposed[1:]
            scales += "".join(f", {flag}" for flag in flags)
        instruction = f"m64n{self.n}k{self.k}.{self.d}.{self.a}.{self.b}"
        return (
            f"TW_INLINE void {self.signature} {{\n"
            f'  asm volatile("{{\\n.reg .pred P;\\nsetp.ne.b32 P, {flag}, 0;\\n"\n'
            f'    "wgmma.mma_async.sync.aligned.{instruction} "\n'
            f'    "{{{d}}}, {a_text}, {b}, P{scales};\\n}}"\n'
            f"    : {_bound('+' + _REGISTER[self.d][1], 'd', self.d_registers)}\n"
            f'    : {a_bound}, "l"(b), "r"(accumulate));\n}}'
        )

    def host(self) -> str:
        """Return the definition as a call of the emulator."""
        a = "a, nullptr" if self.source == "ss" else "0, a"
        a_major, b_major = self.transposed
        return (
            f"TW_INLINE void {self.signature} {{ emulator::wgmma({_kinds(self.d, self.a, self.b)}, "
            f"{self.n}, {self.k}, d, {a}, b, accumulate, {a_major}, {b_major}); }}"
        )


def members() -> Iterator[Mma | Wgmma]:
    """Yield every member of both families."""
    for (d, a, b), depths in _OPERANDS.items():
        yield from (Mma(k, d, a, b) for k in depths)
        sixteen = ELEMENT_BITS[a] == 16
        for n in _columns(a):
            for source, a_majors in (("ss", "nt"), ("rs", "n")):
                majors = ["", *(i + j for i in a_majors for j in "nt")] if sixteen else [""]
                yield from (Wgmma(n, 256 // ELEMENT_BITS[a], d, a, b, source, m) for m in majors)


def used(source: str) -> list[Mma | Wgmma]:
    """Return the members that a kernel's text names, each once, in the order of their names.

    Raises :class:`InputError` for a name that follows the pattern but is no instruction.
    """
    found: dict[str, Mma | Wgmma] = {}
    for match in _MMA.finditer(source):
        k, d, a, b = match.groups()
        found[match.group()] = Mma(int(k), d, a, b)
    for match in _WGMMA.finditer(source):
        n, k, d, a, b, kind, a_major, b_major = match.groups()
        majors = f"{a_major or ''}{b_major or ''}"
        found[match.group()] = Wgmma(int(n), int(k), d, a, b, kind, majors)
    return [found[name] for name in sorted(found)]


def _columns(a: str) -> list[int]:
    """Return the possible N of wgmma for operands of type ``a``."""
    return [n for n in range(8, 257, 8) if a != "s8" or n <= 32 or n % 16 == 0]


def _numbered(*counts: int) -> Iterator[str]:
    """Yield the operand lists ``%0, %1, ...`` of consecutive groups of ``counts`` registers."""
    start = 0
    for count in counts:
        yield ", ".join(f"%{i}" for i in range(start, start + count))
        start += count


def _bound(constraint: str, name: str, count: int) -> str:
    return ", ".join(f'"{constraint}"({name}[{i}])' for i in range(count))


def _kinds(d: str, a: str, b: str) -> str:
    return ", ".join(f"emulator::Kind::{kind}" for kind in (d, a, b))
