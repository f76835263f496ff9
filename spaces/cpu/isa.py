"""Instruction sets: the vector unit of a machine, as a compiler's macros tell it.

This is the only module that knows one processor family from another. Kernels are written in
portable vector types; what portable C cannot say (a bfloat16 dot product) is written here.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from tilewright.spaces.numerics.polynomials import EXP2, fused_horner


@dataclass(frozen=True)
class Isa:
    """A vector instruction set: the bytes of its registers, and their number."""

    name: str
    macros: frozenset[str]
    vector_bytes: int
    vector_registers: int


# The first one whose macros are all defined is the machine's.
KNOWN = (
    Isa("avx512", frozenset({"__AVX512BW__", "__AVX512VL__", "__FMA__"}), 64, 32),
    Isa("avx2", frozenset({"__AVX2__", "__FMA__"}), 32, 16),
    Isa("sse2", frozenset({"__SSE2__"}), 16, 16),
    Isa("neon", frozenset({"__ARM_NEON"}), 16, 32),
    Isa("vsx", frozenset({"__VSX__"}), 16, 32),
)
GENERIC = Isa("generic", frozenset(), 16, 16)
FMA_MACROS = frozenset({"__FP_FAST_FMAF", "__FMA__", "__ARM_FEATURE_FMA"})


def detect_isa(macros: Set[str]) -> Isa:
    """Return the widest instruction set that a compiler with these predefined macros uses."""
    return next((isa for isa in KNOWN if isa.macros <= macros), GENERIC)


def has_fma(macros: Set[str]) -> bool:
    """Tell whether a multiply and an add can be one instruction."""
    return bool(FMA_MACROS & macros)


def has_bf16_dot(macros: Set[str]) -> bool:
    """Tell whether there is a dot product of bfloat16 pairs into float32 lanes (VDPBF16PS)."""
    return "__AVX512BF16__" in macros


# GCC makes vectors of its instruction for single numbers, if a target has no code of its own here.
_FMA = """\
static inline vf tw_fma(vf a, vf b, vf c) {
#if defined(__clang__)
#pragma clang fp contract(on)
  return a * b + c;
#elif @KNOWN@
  return @CODE@;
#elif defined(__FP_FAST_FMAF)
  vf r;
  for (unsigned long i = 0; i < sizeof r / sizeof r[0]; i++) r[i] = @ONE@(a[i], b[i], c[i]);
  return r;
#else
  return a * b + c;
#endif
}
"""
_FMA_CODES = {
    "avx512": "__builtin_ia32_vfmadd@P@512_mask(a, b, c, (unsigned char)-1, 4)",
    "avx2": "__builtin_ia32_vfmadd@P@256(a, b, c)",
}


def fma(isa: str, element: str = "float32") -> str:
    """Return the C definition of ``tw_fma(a, b, c)``: ``a * b + c`` for vectors of ``element``,
    rounded once if the machine has an instruction for it."""
    code = _FMA_CODES.get(isa, "")
    if element == "float64":
        code, one = code.replace("@P@", "pd"), "__builtin_fma"
    else:
        code, one = code.replace("@P@", "ps").replace("char", "short"), "__builtin_fmaf"
    text = _FMA.replace("@KNOWN@", str(int(bool(code)))).replace("@CODE@", code or "c")
    return text.replace("@ONE@", one)


def partial_access(isa: str) -> str:
    """Return the C definitions of the ``tw_load_first_`` and ``tw_store_first_`` functions of
    ``spaces.cpu.vectors.simd``, by masked instructions, or else by loops."""
    floats = _FIRST_FLOATS.get(isa, _FIRST_FLOATS_BY_LOOPS)
    return floats + _FIRST_WORDS.get(isa, _FIRST_WORDS_BY_LOOPS)


_FIRST_FLOATS = {
    "avx512": """\
static inline vf tw_load_first_float32(const float *p, long n) {
  return __builtin_ia32_loadups512_mask((const void *)p, (vf){0}, (1u << n) - 1);
}
static inline void tw_store_first_float32(float *p, vf x, long n) {
  __builtin_ia32_storeups512_mask((void *)p, x, (1u << n) - 1);
}
""",
    "avx2": """\
static inline vf tw_load_first_float32(const float *p, long n) {
  return __builtin_ia32_maskloadps256((const void *)p, (vi){0, 1, 2, 3, 4, 5, 6, 7} < (int)n);
}
static inline void tw_store_first_float32(float *p, vf x, long n) {
  __builtin_ia32_maskstoreps256((void *)p, (vi){0, 1, 2, 3, 4, 5, 6, 7} < (int)n, x);
}
""",
}
# The loops have two bounds, for compilers do not know that there are fewer elements than lanes.
_FIRST_FLOATS_BY_LOOPS = """\
static inline vf tw_load_first_float32(const float *p, long n) {
  vf x = {0};
  for (long i = 0; i < n && i < (long)(sizeof x / sizeof x[0]); i++) x[i] = p[i];
  return x;
}
static inline void tw_store_first_float32(float *p, vf x, long n) {
  for (long i = 0; i < n && i < (long)(sizeof x / sizeof x[0]); i++) p[i] = x[i];
}
"""
_FIRST_WORDS = {
    "avx512": """\
typedef short tw_words __attribute__((vector_size(32)));
static inline vh tw_load_first_words(const unsigned short *p, long n) {
  return (vh)__builtin_ia32_loaddquhi256_mask((const void *)p, (tw_words){0}, (1u << n) - 1);
}
static inline void tw_store_first_words(unsigned short *p, vh x, long n) {
  __builtin_ia32_storedquhi256_mask((void *)p, (tw_words)x, (1u << n) - 1);
}
""",
}
_FIRST_WORDS_BY_LOOPS = """\
static inline vh tw_load_first_words(const unsigned short *p, long n) {
  vh x = {0};
  for (long i = 0; i < n && i < (long)(sizeof x / sizeof x[0]); i++) x[i] = p[i];
  return x;
}
static inline void tw_store_first_words(unsigned short *p, vh x, long n) {
  for (long i = 0; i < n && i < (long)(sizeof x / sizeof x[0]); i++) p[i] = x[i];
}
"""

# A masked load sets other lanes to zero, and does not touch their memory.
_MASKED_LOAD = {
    "avx512": """\
static inline vf tw_masked(const float *p, long low, long high) {
  return __builtin_ia32_loadups512_mask((const void *)p, (vf){0}, (1u << high) - (1u << low));
}
""",
    "avx2": """\
static inline vf tw_masked(const float *p, long low, long high) {
  const vi lanes = {0, 1, 2, 3, 4, 5, 6, 7};
  return __builtin_ia32_maskloadps256((const void *)p, (lanes >= (int)low) & (lanes < (int)high));
}
""",
}


def masked_load(isa: str) -> str:
    """Return the C definition of ``tw_masked(p, low, high)``: the floats at ``p`` in the lanes from
    ``low`` to before ``high``, of which there may be none. Return the empty string if no
    instruction does it."""
    return _MASKED_LOAD.get(isa, "")


_REPEATED = {
    "avx512": "__builtin_ia32_broadcastf32x4_512(*(const tw_four *)p, (vf){0}, (unsigned short)-1)",
    "avx2": "__builtin_ia32_vbroadcastf128_ps256((const void *)p)",
}
_REPEATED_TEXT = """\
typedef float tw_four __attribute__((vector_size(16), aligned(4), may_alias));
static inline vf tw_repeated(const float *p) {
#if !defined(__clang__) && @KNOWN@
  return @CODE@;
#else
  vf x;
  for (unsigned long i = 0; i < sizeof x / sizeof x[0]; i++) x[i] = p[i % 4];
  return x;
#endif
}
"""


def repeated(isa: str) -> str:
    """Return the C definition of ``tw_repeated(p)``: the four floats at ``p``, repeated in all
    lanes."""
    return _known(_REPEATED_TEXT, _REPEATED.get(isa, ""))


_HALF = {
    "avx512": "__builtin_ia32_ps512_256ps(*(const tw_half *)p)",
    "avx2": "__builtin_ia32_ps256_ps(*(const tw_half *)p)",
}
_HALF_TEXT = """\
typedef float tw_half __attribute__((vector_size(sizeof(vf) / 2), aligned(4), may_alias));
static inline vf tw_load_half_float32(const float *p) {
#if !defined(__clang__) && @KNOWN@
  return @CODE@;
#else
  return tw_load_first_float32(p, TW_LANES / 2);
#endif
}
"""


def half_load(isa: str) -> str:
    """Return the C definition of ``tw_load_half_float32(p)``: the floats at ``p`` in the first half
    of a vector, whose other half holds anything. Unlike one with a mask, the load touches no line
    of memory but theirs."""
    return _known(_HALF_TEXT, _HALF.get(isa, ""))


_LOOKUP = {
    "avx512": "__builtin_ia32_gathersiv16sf((vf){0}, p, o, (unsigned short)-1, 4)",
    "avx2": "__builtin_ia32_gathersiv8sf((vf){0}, p, o, (vf)((vi){0} - 1), 4)",
}
_LOOKUP_TEXT = """\
static inline vf tw_lookup_float32(const float *p, vi o) {
#if !defined(__clang__) && @KNOWN@
  return @CODE@;
#else
  return tw_scattered_float32(p, o, TW_LANES);
#endif
}
"""


def lookup(isa: str) -> str:
    """Return the C definition of ``tw_lookup_float32(p, o)``: the floats at the offsets ``o``."""
    return _known(_LOOKUP_TEXT, _LOOKUP.get(isa, ""))


def _known(text: str, code: str) -> str:
    """Return ``text`` with the expression of an instruction, if there is one."""
    return text.replace("@KNOWN@", str(int(bool(code)))).replace("@CODE@", code or "(vf){0}")


# A multiplication of pairs of bytes ends in 16 bits, which codes of 8 bits would overflow: even and
# odd bytes are factors of 16 bits then.
_BYTE_DOT = """\
typedef short tw_shorts __attribute__((vector_size(@BYTES@)));
typedef char tw_bytes __attribute__((vector_size(@BYTES@)));
static inline vi tw_byte_dot(vi sums, vu codes, vi x) {
#if !defined(__clang__) && (@KNOWN@)
  return @DOT@;
#elif !defined(__clang__) && @PAIRED@
  return sums + @CODE@;
#else
  for (int byte = 0; byte < 32; byte += 8)
    sums += (vi)(codes >> byte & 255) * ((vi)((vu)x << (24 - byte)) >> 24);
  return sums;
#endif
}
"""
_DOTS = {
    "avx512": ("__AVX512VNNI__", "__builtin_ia32_vpdpbusd_v16si(sums, (vi)codes, x)"),
    "avx2": (
        "__AVXVNNI__) || defined(__AVX512VNNI__",
        "__builtin_ia32_vpdpbusd_v8si(sums, (vi)codes, x)",
    ),
}
_BYTE_PAIRS = {
    "avx512": "(tw_shorts)__builtin_ia32_pmaddubsw512_mask((tw_bytes)codes, (tw_bytes)x, "
    "(tw_shorts){0}, -1)",
    "avx2": "__builtin_ia32_pmaddubsw256((tw_bytes)codes, (tw_bytes)x)",
}
_SHORT_PAIRS = {
    "avx512": "(vi)__builtin_ia32_pmaddwd512_mask(@A@, @B@, (vi){0}, -1)",
    "avx2": "__builtin_ia32_pmaddwd256(@A@, @B@)",
}


def byte_dot(isa: str, vector_bytes: int, bits: int) -> str:
    """Return the C definition of ``tw_byte_dot(sums, codes, x)``: each lane of ``sums`` plus the
    products of four codes of up to ``bits`` bits, without a sign, and four numbers of 8 bits that
    have one. It is exact."""

    def pairs(a: str, b: str) -> str:
        return _SHORT_PAIRS[isa].replace("@A@", a).replace("@B@", b)

    macro, dot = _DOTS.get(isa, ("TW_NONE", "sums"))
    code = "sums"
    if isa in _BYTE_PAIRS and bits < 8:
        code = pairs(_BYTE_PAIRS[isa], "(tw_shorts){0} + 1")
    elif isa in _SHORT_PAIRS:
        even = pairs("(tw_shorts)(codes & 0xff00ff)", "((tw_shorts)x << 8) >> 8")
        code = f"{even} + {pairs('(tw_shorts)(codes >> 8 & 0xff00ff)', '(tw_shorts)x >> 8')}"
    values = {
        "BYTES": str(vector_bytes),
        "KNOWN": f"defined({macro})",
        "DOT": dot,
        "PAIRED": str(int(isa in _SHORT_PAIRS)),
        "CODE": code,
    }
    text = _BYTE_DOT
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


# An empty instruction that "changes" x, so that compilers cannot read memory again instead.
_KEEP = """\
static inline vf tw_keep(vf x) {
%s  return x;
}
"""
_KEEP_CONSTRAINTS = {"avx512": "v", "avx2": "x", "sse2": "x", "neon": "w"}


def keep(isa: str) -> str:
    """Return the C definition of ``tw_keep(x)``: ``x``, which stays in a register from there on."""
    constraint = _KEEP_CONSTRAINTS.get(isa)
    return _KEEP % (f'  __asm__("" : "+{constraint}"(x));\n' if constraint else "")


def used(isa: str) -> str:
    """Return the C definition of ``tw_used(x)``, an empty instruction that reads ``x``.

    The register of ``x`` is not free before it, so that a product that is added to a sum goes to
    the sum's register.
    """
    constraint = _KEEP_CONSTRAINTS.get(isa)
    body = f' __asm__("" : : "{constraint}"(x)); ' if constraint else ""
    return f"static inline void tw_used(vf x) {{{body}}}\n"


# Stores past the caches by the bytes of a vector; vectors of other sizes are stored as usual.
_NONTEMPORAL = {
    16: "__builtin_ia32_movntps",
    32: "__builtin_ia32_movntps256",
    64: "__builtin_ia32_movntps512",
}
_VECTOR_BYTES = {"avx512": (64, 32), "avx2": (32, 16), "sse2": (16, 0)}  # sizes of vf and vh


def nontemporal(isa: str) -> str:
    """Return the C definitions of ``tw_nontemporal_vf(p, x)`` and ``tw_nontemporal_vh(p, x)``,
    which store a vector past the caches to an aligned place, and of ``tw_flush()``, which waits for
    all such stores."""
    widths = dict(zip(("vf", "vh"), _VECTOR_BYTES.get(isa, (0, 0)), strict=True))
    text = "".join(_nontemporal(vector, width) for vector, width in widths.items())
    flush = "__builtin_ia32_sfence();" if isa in _VECTOR_BYTES else ""
    return f"{text}static inline void tw_flush(void) {{ {flush} }}\n"


def _nontemporal(vector: str, width: int) -> str:
    if not width:
        return f"#define tw_nontemporal_{vector}(p, x) (*({vector} *)(p) = (x))\n"
    return f"""\
#ifdef __clang__
#define tw_nontemporal_{vector}(p, x) __builtin_nontemporal_store(x, ({vector} *)(p))
#else
typedef float tw_{vector}_bits __attribute__((vector_size({width})));
#define tw_nontemporal_{vector}(p, x) {_NONTEMPORAL[width]}(p, (tw_{vector}_bits)(x))
#endif
"""


BFLOAT16_DOT = """\
static inline vf tw_dot_pairs(vf sum, vf a, vf b) {
  __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  return sum;
}
"""

# GCC prefers vectors of half the width for loops, and would split those of AVX-512; of narrower
# ones it makes a comparison and a selection if an operand is a constant.
_AVX512_EXTREME = """\
#ifdef __clang__
static inline vf tw_@NAME@(vf a, vf b) { return __builtin_ia32_@CODE@ps512(a, b, 4); }
#else
static inline vf tw_@NAME@(vf a, vf b) {
  return __builtin_ia32_@CODE@ps512_mask(a, b, a, (unsigned short)-1, 4);
}
#endif"""
_EXTREME = "static inline vf tw_@NAME@(vf a, vf b) { return __builtin_ia32_@CODE@(a, b); }"
_EXTREMES = {
    "avx512": _AVX512_EXTREME,
    "avx2": _EXTREME.replace("@CODE@", "@CODE@ps256"),
    "sse2": _EXTREME.replace("@CODE@", "@CODE@ps"),
}


def extremes(isa: str) -> dict[str, str]:
    """Return the C definitions of ``tw_lesser`` and ``tw_greater``, by the names in
    ``vector_math``, for instruction sets whose instruction compilers do not find: it gives ``b`` if
    either is NaN."""
    if isa not in _EXTREMES:
        return {}
    codes = {"lesser": "min", "greater": "max"}
    return {
        name: _EXTREMES[isa].replace("@NAME@", name).replace("@CODE@", code)
        for name, code in codes.items()
    }


# The lanes of two vectors that are NaN: a mask register or a vector, as comparisons give it.
_UNORDERED = """\
typedef @TYPE@ tw_lanes;
static inline tw_lanes tw_unordered(vf a, vf b) { return (tw_lanes)@TEST@; }
"""
_UNORDERED_TESTS = {
    "avx512": ("unsigned short", "__builtin_ia32_cmpps512_mask(a, b, 3, (unsigned short)-1, 4)"),
    "avx2": ("vi", "__builtin_ia32_cmpps256(a, b, 3)"),
    "sse2": ("vi", "__builtin_ia32_cmpunordps(a, b)"),
}
_ANY_LANE = """\
static inline int tw_any_lane(tw_lanes lanes) {
  int found = 0;
  for (int i = 0; i < TW_LANES; i++) found |= lanes[i];
  return found != 0;
}
"""


def unordered(isa: str) -> str:
    """Return the C definitions of the type ``tw_lanes``, of ``tw_unordered(a, b)``, the lanes in
    which ``a`` or ``b`` is NaN, and of ``tw_any_lane(lanes)``."""
    kind, test = _UNORDERED_TESTS.get(isa, ("vi", "((a != a) | (b != b))"))
    text = _UNORDERED.replace("@TYPE@", kind).replace("@TEST@", test)
    if kind == "vi":
        return text + _ANY_LANE
    return text + "static inline int tw_any_lane(tw_lanes lanes) { return lanes != 0; }\n"


# The last instruction gives 0 for -inf, whatever the power of the remainder is.
_AVX512_POWER = """\
TW_INLINE vf tw_power(vf x) {
  vf f, y;
  __asm__("vreduceps $8, %1, %0" : "=v"(f) : "v"(x));
  vf p = @POLYNOMIAL@;
  __asm__("vscalefps %2, %1, %0" : "=v"(y) : "v"(p), "v"(x - f));
  return y;
}
"""


def power(isa: str) -> str:
    """Return the C definition of ``tw_power(x)``, two to the power ``x``, by instructions that
    split and scale a number, so that none is out of range. Return the empty string if there are
    none."""
    return _AVX512_POWER.replace("@POLYNOMIAL@", fused_horner(EXP2, "f")) if isa == "avx512" else ""
