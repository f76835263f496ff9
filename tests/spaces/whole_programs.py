"""Random programs whose indices and conditions go beyond 24, 31 and 53 bits, as text."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program
from tilewright.spaces.language.bounds import Bounds
from tilewright.spaces.language.reading.inference import entry_ranges
from tilewright.spaces.operators import workload
from tilewright.spaces.workloads.workload import Workload

ROWS, COLUMNS, TERMS = 9, 37, 5
FACTORS = [1, 2, 3, 16, 7919, 100003, 2**24 + 1, 16000001, 2**31 - 1, 2**31 + 11, 10**10 + 7]
DIVISORS = [1, 2, 3, 7, 64, 1000, 1000003, 2**24, 2**31, 2**31 + 11, 10**10]
EDGES = [2**24 - 1, 2**24, 2**24 + 1, 2**31 - 1, 2**31, 2**31 + 1, 2**53 - 1, 2**53]
SIGNS = ["<", "<=", ">", ">=", "==", "!="]
LIMITS = [3, 2**24 + 5, 2**31 - 1]

REFUSED = ("2**60", "2**53", "leaves no element", "bounds no reduction", "runs from")
"""What the language says of programs that it does not take."""


def whole(*atoms: str) -> st.SearchStrategy[str]:
    """An index: what the language takes of these atoms."""
    factors, divisors = st.sampled_from(FACTORS), st.sampled_from(DIVISORS)
    leaves = st.sampled_from(atoms) | st.builds("{} * {}".format, factors, st.sampled_from(atoms))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds("({} + {})".format, inner, inner),
            st.builds("({} - {})".format, inner, inner),
            st.builds("({}) * {}".format, inner, factors),
            st.builds("({}) // {}".format, inner, divisors),
            st.builds("({}) % {}".format, inner, divisors),
        ),
        max_leaves=5,
    )


@st.composite
def condition(draw, *atoms: str) -> str:
    """A comparison of whole numbers near where floats, or 32 bits, would have others."""
    own, sign = draw(whole(*atoms)), draw(st.sampled_from(SIGNS))
    if draw(st.booleans()):
        edge = draw(st.sampled_from(EDGES))
        first, *others = atoms
        near = f"{first} - {draw(st.sampled_from(others or [first]))} + {edge - 2}"
        return f"{near} {sign} {edge}"
    if draw(st.booleans()):
        return f"({own}) % {draw(st.sampled_from(DIVISORS[1:]))} {sign} 1"
    return f"{own} {sign} {draw(whole(*atoms))}"


@st.composite
def inside(draw, size: int, *atoms: str) -> str:
    """An index of an array of so many elements, and never beyond."""
    return f"({draw(whole(*atoms))}) % {size}"


@st.composite
def gathered(draw) -> str:
    index = draw(inside(4099, "i", "j", "t[i]", "t[j]"))
    return f"z: DTYPE[4099]; y: DTYPE; y[i,j] = z[{index}]"


@st.composite
def read_near(draw) -> str:
    """An index whose range is what the language says, divided so far that an array has it all."""
    own = draw(whole("i", "j"))
    try:
        made = program(
            f"z: float32[{2**31}]; y[i,j] = z[({own}) % 2 + i * 0 + j * 0]", i=ROWS, j=COLUMNS
        )
        index = made.stages[0].body.indices[0]
        low, high = Bounds.under((), made.extent, entry_ranges(made)).of(index)
        divided = program(f"y[i,j] = ({own}) // {2**30} + i * 0 + j * 0", i=ROWS, j=COLUMNS)
        low, high = Bounds.under((), divided.extent, {}).of(divided.stages[0].body)
    except InputError:
        assume(False)
    assume(high - low < 5000)
    shift = f"- {low}" if low > 0 else f"+ {-low}"
    return f"z: DTYPE[{high - low + 1}]; y: DTYPE; y[i,j] = z[({own}) // {2**30} {shift}]"


@st.composite
def chosen(draw) -> str:
    holds = draw(condition("i", "j", "t[i]", "t[j]"))
    return f"y[i,j] = select({holds}, x[i,j], 0.5 - x[i,j])"


@st.composite
def products_of_axes(draw) -> str:
    holds = f"i * j * {draw(st.sampled_from(FACTORS))} + {draw(st.sampled_from(EDGES))}"
    sign, edge = draw(st.sampled_from(SIGNS)), draw(st.sampled_from(EDGES))
    return f"y[i,j] = select(max({holds}, j) {sign} {edge}, x[i,j], 0.5 - x[i,j])"


@st.composite
def beside_floats(draw) -> str:
    own, edge = draw(st.sampled_from(["i", "j", "i - j"])), draw(st.sampled_from(EDGES[:-2]))
    sign = draw(st.sampled_from(SIGNS))
    return f"y[i,j] = select({own} + {edge} {sign} w[i] * {2.0**23} * 2, x[i,j], 0.5 - x[i,j])"


@st.composite
def values(draw) -> str:
    return f"y[i,j] = ({draw(whole('i', 'j', 't[j]'))}) * x[i,j] + ({draw(whole('i', 'j'))}) / 3"


@st.composite
def reduced(draw) -> str:
    holds = draw(condition("i", "j"))
    body = f"select({holds}, x[i,j], 0.5 - x[i,j])"
    form = draw(
        st.sampled_from(["y[i] = max[j]({})", "y[i,j] = softmax[j]({})", "y[i] = sum[j]({})"])
    )
    return form.format(body)


def computed(*atoms: str) -> st.SearchStrategy[str]:
    """A whole number that functions and selections of whole numbers give, near an edge."""
    edges = st.sampled_from(EDGES)
    leaves = st.sampled_from(atoms) | st.builds("{} + {}".format, st.sampled_from(atoms), edges)
    two = st.sampled_from(["min", "max"])
    return st.recursive(
        leaves | st.builds("{1} - {0}".format, edges, st.sampled_from(atoms)),
        lambda inner: st.one_of(
            st.builds("{}({}, {})".format, two, inner, inner),
            st.builds("{}({}, {})".format, two, inner, edges),
            st.builds("{}({})".format, st.sampled_from(["abs", "relu", "floor"]), inner),
            st.builds("select({} > {}, {}, {})".format, inner, inner, inner, inner),
            st.builds("({} - {})".format, inner, inner),
            st.builds("({}) * {}".format, inner, st.sampled_from([2, 3, 7919])),
        ),
        max_leaves=5,
    )


@st.composite
def functions(draw) -> str:
    """A selection by functions of whole numbers, beside whole numbers or floats."""
    form, column = draw(
        st.sampled_from(
            [
                ("y[i,j] = {}", "j"),
                ("y[i] = max[j]({})", "j"),
                ("y[i,j] = softmax[j]({})", "j"),
                ("y[i] = sum[j]({})", "j"),
                ("y[i,j] = sum[m: m <= j]({})", "m"),
            ]
        )
    )
    atoms = draw(st.sampled_from([("i", column), ("i", column, "t[i]")]))
    own, sign, edge = (
        draw(computed(*atoms)),
        draw(st.sampled_from(SIGNS)),
        draw(st.sampled_from(EDGES)),
    )
    if draw(st.booleans()):
        return form.format(f"({own}) * x[i,{column}]")
    other = draw(st.sampled_from([edge, f"w[i] * {2.0**23} * 2", f"max({column}, {edge})"]))
    return form.format(f"select({own} {sign} {other}, x[i,{column}], 0.5 - x[i,{column}])")


@st.composite
def parts(draw) -> str:
    """A program of which one kernel computes or gathers what another one sums up."""
    index = draw(inside(4099, "i", "j"))
    own = (
        f"{draw(computed('i', 'j'))} {draw(st.sampled_from(SIGNS))} {draw(st.sampled_from(EDGES))}"
    )
    chosen = f"select({own}, x[i,j], 0.5 - x[i,j])"
    return draw(
        st.sampled_from(
            [
                f"y[i,e] = sum[j]({chosen} * u[j,e])",
                f"y[i,j] = select({own}, sum[k](a[i,k] * b[k,j]), 0.5)",
                f"z: DTYPE[4099]; y[i,e] = sum[j](z[{index}] * u[j,e])",
            ]
        )
    )


@st.composite
def rows_chosen(draw) -> str:
    factor = draw(st.sampled_from([1, 3, 7919]))
    size = 11 + (ROWS - 1) * factor
    return (
        f"t: int32[i](index < 11); z: float32[{size},j]; y[i] = max[j](z[t[i] + {factor} * i, j])"
    )


@st.composite
def windows(draw) -> str:
    step, back = (
        draw(st.sampled_from([1, 7, 10**6, 2**31 + 11])),
        draw(st.sampled_from([0, 3, 10**9])),
    )
    reducer = draw(st.sampled_from(["sum", "max"]))
    index = f"{step} * k + i - {back}"
    return f"z: float32[50,j]; y[i,j] = {reducer}[k](inside(z[{index}, j], 0))"


@st.composite
def products(draw) -> str:
    step, back = (
        draw(st.sampled_from([1, 7, 10**6, 2**31 + 11])),
        draw(st.sampled_from([0, 3, 10**9])),
    )
    index = f"{step} * k + i - {back}"
    return f"z: DTYPE[50,4]; w: DTYPE; y[i,j] = sum[k,c](inside(z[{index}, c], 0) * w[k,c,j])"


@st.composite
def attention(draw) -> str:
    atoms = draw(st.sampled_from([("j", "i"), ("j", "i", "t[j]", "t[i]"), ("p[i]", "p[j]", "j")]))
    own = draw(condition(*atoms))
    if draw(st.booleans()):
        own = draw(st.sampled_from(["j - t[i] > 2", "j + t[i] * 2 < 30", "t[i] * 3 - j > t[i]"]))
    elif draw(st.booleans()):
        own = f"{draw(computed('j', 'i'))} > {draw(computed('j', 'i'))}"
    score = "sum[k](q[i,k] * u[j,k])"
    if draw(st.booleans()):
        return f"where {own}; y[i,e] = sum[j](softmax[j]({score}) * v[j,e])"
    return f"y[i,e] = sum[j](softmax[j](select({own}, {score}, 0.5 - {score})) * v[j,e])"


@st.composite
def written(draw) -> str:
    own = draw(whole("i", "j", "t[j]"))
    if draw(st.booleans()):
        return f"y: int32; y[i,j] = {own} + i * 0 + j * 0"
    factor = draw(st.sampled_from(FACTORS))
    return f"a[i] = argmax[j](x[i,j]); y: int32; y[i] = {factor} * a[i] - i; -> y"


@st.composite
def summed(draw) -> str:
    factor = draw(st.sampled_from(FACTORS))
    body = draw(st.sampled_from(["p[i] * p[j]", f"p[j] * {factor}", "p[i] - p[j]"]))
    return f"y: int32; y[i] = {draw(st.sampled_from(['sum', 'max']))}[j]({body})"


KINDS: dict[str, Callable[[], st.SearchStrategy[str]]] = {
    "gathered": gathered,
    "read near": read_near,
    "chosen": chosen,
    "products of axes": products_of_axes,
    "beside floats": beside_floats,
    "values": values,
    "reduced": reduced,
    "functions": functions,
    "parts": parts,
    "rows chosen": rows_chosen,
    "windows": windows,
    "products": products,
    "attention": attention,
    "written": written,
    "summed": summed,
}


FOUND = [
    "select(max(i * j * 1 + 16777215, j) < 16777217, x[i,j], 0.5 - x[i,j])",
    "select(min(i, j) + 16777213 < 16777217, x[i,j], 0.5 - x[i,j])",
    "select(abs(i - 16777221) > relu(j + 16777212), x[i,j], 0.5 - x[i,j])",
    "select(select(j > i, j, i) + 2147483640 == 2147483647, x[i,j], 0.5 - x[i,j])",
    "select(relu(i * j + 9007199254740990) > 9007199254740990 + min(j, 2), x[i,j], 0.5 - x[i,j])",
    "select(select(i + 16777215 > j, j - 7, i) - i + 16777216 < 16777217, x[i,j], 0.5 - x[i,j])",
    "select(j - 16777216 > i + 9007199254740992, x[i,j], 0.5 - x[i,j])",
]
"""Values at ``i`` and ``j`` of which some kernel computed other elements, or was not made."""


def found(value: str) -> list[Workload]:
    """Return workloads of such a value, alone and in sums and maxima of one kernel or two."""
    forms = ["y[i,j] = {}", "y[i] = max[j]({})", "y[i,e] = sum[j]({} * u[j,e])"]
    texts = [form.format(value) for form in forms]
    return [workload(t, i=ROWS, j=COLUMNS, **({"e": 8} if "e]" in t else {})) for t in texts]


@st.composite
def programs(draw, kind: str, dtype: str = "float32") -> Workload:
    """A workload of one of :data:`KINDS`; programs that the language refuses are left out."""
    text = draw(KINDS[kind]()).replace("DTYPE", dtype)
    length = COLUMNS if "t[j]" in text or "p[j]" in text else ROWS
    tables = {
        "t[": f"t: int32[{length}](index < {draw(st.sampled_from(LIMITS))})",
        "p[": f"p: int32[{length}]",
    }
    declared = [
        line for name, line in tables.items() if name in text and f"{name[0]}: " not in text
    ]
    sizes = {"i": ROWS, "j": COLUMNS, "k": TERMS, "e": 8, "c": 4, "m": COLUMNS}
    words = set("".join(c if c.isalnum() else " " for c in text).split())
    used = {axis: n for axis, n in sizes.items() if axis in words}
    try:
        return workload("; ".join([*declared, text]), dtype=dtype, **used)
    except InputError as reason:
        assume(not any(word in str(reason) for word in REFUSED))
        raise


def inputs(made: Workload, seed: int) -> dict[str, np.ndarray]:
    """Random inputs, among whose whole numbers are their limits and neighbours that floats take
    for equal."""
    drawn = made.make_inputs(seed)
    generator = np.random.default_rng(seed)
    for operand in made.inputs:
        if operand.element.is_integer and operand.drawn is None:
            limits = np.iinfo(operand.element.numpy)
            near = generator.integers(2**24, 2**24 + 8, operand.shape)
            far = generator.choice([limits.min, limits.max, limits.max - 1, -1, 0], operand.shape)
            drawn[operand.name] = np.where(generator.random(operand.shape) < 0.3, far, near)
            drawn[operand.name] = drawn[operand.name].astype(operand.element.numpy)
        if operand.name == "w" and len(operand.shape) == 1:
            near = np.float32(generator.choice(EDGES[:-2], operand.shape) / 2.0**24)
            drawn["w"] = near.astype(operand.element.numpy)
    return drawn
