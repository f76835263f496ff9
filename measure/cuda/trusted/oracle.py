"""The trusted kernels that judge all others on the device. Those that compute the allowed bounds
are in :mod:`measure.cuda.trusted.products` and :mod:`measure.cuda.trusted.programs`.

Checking large outputs on the host takes seconds. So random inputs, allowed bounds and the
comparison are computed on the device. These kernels are plain and share no code with the templates.
Tests compare them with NumPy on the emulator, and :mod:`measure.cuda.session` does so on every
device before it trusts them. Arguments follow ``spaces.cuda.abi``; every array is dense in its
operand's memory order, and positions count elements in that order.
"""

from __future__ import annotations

import zlib
from dataclasses import replace

from tilewright.measure.cuda.trusted.statements import MATHEMATICS, as_double
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.kernel import Call, Kernel, Launch, Source, arguments
from tilewright.spaces.numerics.allowance import bounds_dtype
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.matmul import Operand

THREADS = 256

REPORT, ALLOWED, OUT = "tw.report", "tw.allowed", "tw.out"
# Names with a dot are no operand's of an epilogue.
SEED = Operand("tw.seed", "int32", (), (), axes=())

_RANDOM = """\
TW_INLINE u64 tw_random(u64 i, u32 seed) {
  u64 z = i + seed * 0x9e3779b97f4a7c15ull + 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}
"""


def report(blocks: int) -> Operand:
    """Make the operand that ``blocks`` write their verdict to: for each thread the number of wrong
    elements, and the position of the first or -1.
    """
    return Operand(REPORT, "float64", (2, blocks * THREADS), (0, 1), axes=("what", "thread"))


def fill(operand: Array, blocks: int, scale: float = 1.0) -> Kernel:
    """Return ``(seed, operand)``: random elements, uniform in [-1, 1], whole ones in [-8, 8); all
    times ``scale``, a power of two, which whole elements take from 1 on."""
    body = f"tw::store_global(out + i, {_element(operand, scale)});"
    operands = (SEED, operand)
    return _walk(f"tw_fill_{operand.name}", operands, operand.size, blocks, _RANDOM, body)


def changed(operand: Array, blocks: int, scale: float = 1.0) -> Kernel:
    """Return ``(seed, operand, report)``: elements that are not as :func:`fill` made them."""
    kind = C_TYPES[operand.dtype]
    body = f"""\
    const {kind} x = tw::load_global(in1 + i), y = {_element(operand, scale)};
    count({_same(operand)}, i);"""
    operands = (SEED, operand, report(blocks))
    return _walk(f"tw_changed_{operand.name}", operands, operand.size, blocks, _RANDOM, body)


def differing(operand: Array, blocks: int) -> Kernel:
    """Return ``(operand, copy, report)``: elements that are not as in the copy."""
    copy = replace(operand, name=copy_name(operand))
    body = f"""\
    const {C_TYPES[operand.dtype]} x = tw::load_global(in0 + i), y = tw::load_global(in1 + i);
    count({_same(operand)}, i);"""
    operands = (operand, copy, report(blocks))
    entry = f"tw_differing_{operand.name}"
    size = operand.span_bytes // operand.element.bytes
    return _walk(entry, operands, size, blocks, "", body)


def copy_name(operand: Array) -> str:
    """Name the copy of an operand."""
    return f"tw.copy.{operand.name}"


def compare(output: Array, blocks: int) -> Kernel:
    """Return ``(allowed, found, report)``: elements of an output that are not as allowed."""
    found = as_double("tw::load_global(in1 + i)", output.dtype)
    body = f"""\
    const double x = {found};
    const double low = tw::load_global(in0 + i), high = tw::load_global(in0 + {output.size} + i);
    const bool anything = low == -ex_infinity() && high == ex_infinity();
    count((x >= low && x <= high) || (x != x && low != low) || anything, i);"""
    operands = (allowed_operand(output), output, report(blocks))
    entry = f"tw_compare_{output.name}"
    return _walk(entry, operands, output.size, blocks, MATHEMATICS, body)


def anything(output: Array, blocks: int) -> Kernel:
    """Return ``(allowed)``: an output whose elements may all be anything."""
    bounds = allowed_operand(output)
    kind = C_TYPES[bounds.dtype]
    body = f"""\
    tw::store_global(out + i, ({kind})-ex_infinity());
    tw::store_global(out + {output.size} + i, ({kind})ex_infinity());"""
    return _walk(f"tw_anything_{output.name}", (bounds,), output.size, blocks, MATHEMATICS, body)


def allowed_operand(output: Array) -> Array:
    """Return the least values that an output may have, then the greatest; both as the output
    lies."""
    order = tuple(dimension + 1 for dimension in output.order)
    kind = bounds_dtype(output).name
    return Array(f"{ALLOWED}.{output.name}", kind, (2, *output.shape), (0, *order))


def pulse(blocks: int, steps: int) -> Kernel:
    """Return ``(out)``: multiply-adds in a chain of ``steps``, whose time shows how the clock
    drifts."""
    out = Operand(OUT, "float32", (blocks * THREADS,), (0,), axes=("thread",))
    source = f"""\
extern "C" __global__ void __launch_bounds__({THREADS}) tw_pulse({signature((out,))}) {{
  float x = (float)threadIdx.x;
  for (int i = 0; i < {steps}; i++) x = x * 0.999f + 1.0f;
  tw::store_global(out + (i64)blockIdx.x * {THREADS} + threadIdx.x, x);
}}
"""
    return trusted_kernel("tw_pulse", "", source, (out,), _launch(blocks))


def sweep(size: int, blocks: int) -> Kernel:
    """Return ``(buffer, out)``: reads ``size`` floats, a multiple of 4, and changes none of
    them."""
    buffer = Operand("buffer", "float32", (size,), (0,), axes=("i",))
    out = Operand(OUT, "float32", (blocks * THREADS,), (0,), axes=("thread",))
    body = """\
    float x[4];
    tw::load_global<4>(x, in0 + 4 * i);
    sum += x[0] + x[1] + x[2] + x[3];"""
    head, tail = "  float sum = 0.0f;\n", "  tw::store_global(out + thread, sum);\n"
    return _over("tw_sweep", (buffer, out), size // 4, blocks, "", (head, body, tail))


def _walk(
    entry: str, operands: tuple[Array, ...], size: int, blocks: int, prelude: str, body: str
) -> Kernel:
    """Return ``body`` for every position ``i`` of an array; it may ``count`` elements for a
    report."""
    head, tail = "", ""
    if operands[0] is SEED:
        head = "  const u32 seed = (u32)tw::load_global(in0);\n"
    if operands[-1].name == REPORT:
        head += """\
  double wrong = 0.0, first = -1.0;
  auto count = [&](bool right, i64 i) {
    if (!right && wrong == 0.0) first = (double)i;
    if (!right) wrong += 1.0;
  };
"""
        tail = f"""\
  tw::store_global(out + thread, wrong);
  tw::store_global(out + {blocks * THREADS} + thread, first);
"""
    return _over(entry, operands, size, blocks, prelude, (head, body, tail))


def _over(
    entry: str,
    operands: tuple[Array, ...],
    size: int,
    blocks: int,
    prelude: str,
    parts: tuple[str, str, str],
) -> Kernel:
    """Return a loop of all threads over ``size`` positions ``i``, with what comes before and after
    it."""
    head, body, tail = parts
    source = f"""\
extern "C" __global__ void __launch_bounds__({THREADS}) {entry}({signature(operands)}) {{
  const i64 thread = (i64)blockIdx.x * {THREADS} + threadIdx.x;
{head}  for (i64 i = thread; i < {size}; i += {blocks * THREADS}) {{
{body}
  }}
{tail}}}
"""
    return trusted_kernel(entry, prelude, source, operands, _launch(blocks))


def trusted_kernel(
    entry: str, prelude: str, body: str, operands: tuple[Array, ...], launch: Launch
) -> Kernel:
    """Return a kernel that writes the last of ``operands``."""
    call = Call(entry, arguments(operands[:-1], operands[-1:]), launches=(launch,))
    return Kernel(Source("cuda", prelude, body), call)


def _launch(blocks: int) -> Launch:
    return Launch((blocks, 1, 1), (THREADS, 1, 1))


def signature(operands: tuple[Array, ...]) -> str:
    """C parameters for these arrays: ``in0`` and so on, and the last, ``out``."""
    *inputs, output = operands
    texts = [f"const {C_TYPES[o.dtype]} *in{i}" for i, o in enumerate(inputs)]
    return ", ".join([*texts, f"{C_TYPES[output.dtype]} *out"])


def own_seed(operand: Array) -> int:
    """Derive from an operand's name the number that is combined with the common seed by exclusive
    or.
    """
    return zlib.crc32(operand.name.encode())


def _same(operand: Array) -> str:
    """Write the C condition that two elements ``x`` and ``y`` are the same, bit by bit where they
    are structures; NaN equals NaN.
    """
    if operand.element.is_integer:
        return "x == y"
    is_structure = operand.element.bytes <= 2
    return "x.bits == y.bits" if is_structure else "x == y || (x != x && y != y)"


def _element(operand: Array, scale: float) -> str:
    """Element ``i`` of random contents, in the operand's type.

    Each operand has a seed of its own: with a common one the rows of A would be the columns of a
    B that is kept transposed, and the diagonal of the product a sum of squares.
    """
    kind, bits = C_TYPES[operand.dtype], f"tw_random((u64)i, seed ^ {own_seed(operand)}u)"
    if operand.element.is_integer:
        value, (least, most) = f"((i32)({bits} >> 60) - 8) * {int(scale)}", operand.element.limits
        if least < 0:
            return f"({kind})({value})"
        return f"({kind})({value} < 0 ? 0 : {value} < {most} ? {value} : {most})"
    if operand.dtype == "float64":
        return f"(double)(i64){bits} * {2.0**-63 * scale!r}"
    value = f"(float)(i32)({bits} >> 32) * {2.0**-31 * scale!r}f"
    if operand.dtype == "tfloat32":
        return f"tw::bits_float(tw::to_tf32({value}) & 0xffffe000u)"
    return f"tw::from_float<{kind}>({value})"


def count_and_first(data: bytes) -> tuple[int, int]:
    """Read from a report the number of wrong elements, and the position of the first (-1 for
    none).
    """
    import numpy as np

    counts, firsts = np.frombuffer(data, np.float64).reshape(2, -1)
    found = firsts[counts > 0]
    return int(counts.sum()), int(found.min()) if len(found) else -1
