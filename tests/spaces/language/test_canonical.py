"""Programs that differ in names and writing alone are one program; others are not."""

import itertools
import random
import re
import warnings

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.spaces.language.rewriting import rewritten
from tests.spaces.language.strategies import programs
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program

SIZES = {"m": 8, "n": 6, "k": 4}


def digests(*texts: str, **extents: int) -> set[str]:
    names = extents or SIZES
    used = [
        {a: n for a, n in names.items() if "axes" not in text and re.search(rf"\b{a}\b", text)}
        for text in texts
    ]
    return {program(t, **given).digest for t, given in zip(texts, used, strict=True)}


EQUAL = {
    "order of a sum": (
        "y[m,n] = sum[k](A[m,k] * B[k,n]) + bias[n] + residual[m,n]",
        "y[m,n] = residual[m,n] + (sum[k](B[k,n] * A[m,k]) + bias[n])",
    ),
    "names": (
        "y[m,n] = sum[k](A[m,k] * B[k,n]) / s",
        "axes i=8, j=6, l=4\nout[i,j] = sum[l](left[i,l] * right[l,j]) / scale",
    ),
    "gelu": (
        "y[m] = gelu(x[m] + b[m])",
        "y[m] = 0.5 * (x[m] + b[m]) * (1 + erf((x[m] + b[m]) / sqrt(2)))",
        "y[m] = (b[m] + x[m]) / 2 * (erf(0.7071067811865476 * (x[m] + b[m])) + 1)",
    ),
    "gelu by tanh": (
        "y[m] = gelu_tanh(x[m])",
        "y[m] = x[m] * (1 + tanh(0.7978845608028654 * (x[m] + 0.044715 * x[m] * x[m] * x[m]))) / 2",
    ),
    "silu": (
        "y[m] = silu(x[m])",
        "y[m] = x[m] * sigmoid(x[m])",
        "y[m] = x[m] / (1 + exp(-x[m]))",
    ),
    "relu": ("y[m] = relu(x[m])", "y[m] = max(0, x[m])"),
    "differences": (
        "y[m] = x[m] - (a[m] + b[m])",
        "y[m] = x[m] - a[m] - b[m]",
        "y[m] = -(a[m] + b[m] - x[m])",
    ),
    "quotients": ("y[m] = x[m] / a[m] / b[m]", "y[m] = x[m] / (b[m] * a[m])"),
    "factors that are alike until their product is read": (
        "axes m=8, n=8, d=4, k=4\ny[m,k] = sum[n](softmax[n](sum[d](q[m,d] * r[n,d])) * v[n,k])",
        "axes m=8, n=8, d=4, k=4\ny[m,k] = sum[n](softmax[n](sum[d](r[n,d] * q[m,d])) * v[n,k])",
    ),
    "a minus of a factor": (
        "y[m] = -(a[m] + b[m]) * c[m] / d[m]",
        "y[m] = -((a[m] + b[m]) * c[m] / d[m])",
        "y[m] = c[m] * (0 - a[m] - b[m]) / d[m]",
        "y[m] = c[m] / d[m] * (a[m] + b[m]) * -1",
    ),
    "minus nothing": (
        "y[m] = x[m] * (0.5 - sum[k](0.5) / size(k))",
        "y[m] = -(x[m] * (0.5 - sum[k](0.5) / size(k)))",
    ),
    "a minus below": ("y[m] = 1 / (-a[m] - b[m])", "y[m] = -1 / (a[m] + b[m])"),
    "maxima of maxima": (
        "y[m] = max(a[m], max(b[m], 0.5)) * b[m]",
        "y[m] = b[m] * max(max(0.25, b[m]), max(a[m], 0.5))",
    ),
    "a count of what is constant": (
        "y[m] = mean[k](x[m,k])",
        "y[m] = sum[k](x[m,k]) / sum[k](4 / 4)",
    ),
    "factors of an index": (
        "x: float32[40]; y[m] = sum[k](x[2 * (m + k)])",
        "x: float32[40]; y[m] = sum[k](x[k + k + 2 * m])",
        "x: float32[40]; y[m] = sum[k](x[(4 * m + 4 * k) // 2])",
    ),
    "a constant in a condition": (
        "y[m] = select(m < size(m) / 2, x[m], 0)",
        "y[m] = select(4 > m, x[m], 0)",
    ),
    "constants": ("y[m] = x[m] / 4 + 1 + 1", "y[m] = 2 + 0.25 * x[m]"),
    "stages of one's own": (
        "y[m,k] = softmax[k](x[m,k])",
        "top[m] = max[k](x[m,k])\ne[m,k] = exp(x[m,k] - top[m])\ny[m,k] = e[m,k] / sum[k](e[m,k])",
    ),
    "order of stages": (
        "a[m] = sum[k](x[m,k]); b[m] = max[k](x[m,k]); y[m] = a[m] * b[m]",
        "b[m] = max[k](x[m,k]); a[m] = sum[k](x[m,k]); y[m] = a[m] * b[m]",
    ),
    "an axis of another name to reduce over": (
        "y[m,k] = x[m,k] - logsumexp[k](x[m,k])",
        "axes m=8, k=4, l=4\ny[m,k] = x[m,k] - logsumexp[l](x[m,l])",
    ),
    "axes of a reduction": ("y[m] = sum[n,k](x[m,n,k])", "y[m] = sum[k,n](x[m,n,k])"),
    "axes of a stage in between": (
        "s[m,n] = sum[k](x[m,n,k]); y[m] = max[n](s[m,n] * z[n])",
        "s[n,m] = sum[k](x[m,n,k]); y[m] = max[n](s[n,m] * z[n])",
    ),
    "conditions": (
        "where n <= m; y[m] = sum[n](x[m,n])",
        "where n < m + 1; y[m] = sum[n](x[m,n])",
        "where m >= n; y[m] = sum[n](x[m,n])",
    ),
    "memory": (
        "x: float32[n, m](order=(1, 0)); y[m] = sum[n](x[n,m])",
        "y[m] = sum[n](x[m,n])",
    ),
    "means": (
        "y[m] = mean[k](x[m,k])",
        "y[m] = sum[k](x[m,k]) / size(k)",
        "y[m] = 0.25 * sum[k](x[m,k])",
    ),
    "a condition said twice": (
        "where n <= m; y[m] = sum[n](x[m,n])",
        "where n <= m and m >= n; y[m] = sum[n](x[m,n])",
    ),
    "memory of the output": (
        "y: float32[m, n](order=(1, 0)); y[m,n] = sum[k](A[m,k] * B[k,n])",
        "y[n,m] = sum[k](A[m,k] * B[k,n])",
    ),
    "alike operands in a ring": (
        "y[m] = a[m] * b[m] + b[m] * c[m] + c[m] * a[m]",
        "y[m] = b[m] * a[m] + c[m] * a[m] + b[m] * c[m]",
    ),
}

DIFFERENT = (
    "y[m,n] = sum[k](A[m,k] * B[k,n])",
    "y[m,n] = sum[k](A[k,m] * B[k,n])",
    "y[m,n] = max[k](A[m,k] * B[k,n])",
    "y[m,n] = sum[k](A[m,k] * B[k,n]) + b[n]",
    "y[m,n] = sum[k](A[m,k] * B[k,n]) + b[m]",
    "y[m,n] = sum[k](A[m,k] * B[k,n]); y: float16[m, n]",
    "y[m,n] = sum[k](A[m,k] * B[k,n]); y: float32[m, n](order=(1, 0))",
    "y[m,n] = sum[k](A[m,k] * B[k,n]); A: float32[m, k](leading=8)",
    "where k <= m; y[m,n] = sum[k](A[m,k] * B[k,n])",
    "where k < m; y[m] = mean[k](A[m,k])",
    "where k < m; y[m] = sum[k](A[m,k]) / size(k)",
    "where k < m; y[m,n] = sum[k](A[m,k] * B[k,n])",
    "y[m,n] = sum[k](A[m,k] * B[m,n])",
    "y[m] = x[m] - a[m] * b[m]",
    "y[m] = x[m] + a[m] * b[m]",
    "y[m] = a[m] * b[m] - x[m]",
    "y[m] = x[m] * x[m] + a[m] * b[m]",
    "y[m] = x[m] * a[m] + x[m] * b[m]",
    "y[m] = select(x[m] < a[m], 1, 0)",
    "y[m] = select(x[m] <= a[m], 1, 0)",
    "y[m] = select(x[m] <= a[m] - 1, 1, 0)",
    "y[m] = x[m]; z[m] = 2 * x[m]; -> y, z",
    "y[m] = x[m]; z[m] = 2 * x[m]; -> z, y",
    "t: int32[m](index < 4); y[m] = x[t[m]]",
    "t: int32[m](sorted < 4); y[m] = x[t[m]]",
    "y[m] = argmax[n,k](x[m,n,k])",
    "y[m] = argmax[k,n](x[m,n,k])",
    "x: float32[8]; y[m] = x[1000000000001 * m % 8]",
    "x: float32[8]; y[m] = x[1000000000003 * m % 8]",
    "y[m] = x[m] + 1000000000001 * m - 1000000000000 * m",
    "y[m] = x[m] + 1000000000002 * m - 1000000000000 * m",
    "x: float32[m]; y[m] = inside(x[m - 1], 0)",
    "x: float32[m]; y[m] = inside(x[m - 1], 1)",
    "x: float32[m]; y[m] = inside(x[m + 1], 0)",
)


@pytest.mark.parametrize("name", EQUAL)
def test_one_program_written_in_several_ways(name: str) -> None:
    assert len(digests(*EQUAL[name])) == 1


def test_constants_of_any_size_have_a_canonical_text_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = digests(
            *(f"y[m] = x[m] * {c}" for c in ("sqrt(-1)", "log(0)", "exp(1000)", "1 / 0"))
        )
    assert len(found) == 4


def test_comparisons_of_whole_numbers_far_apart_have_a_canonical_text() -> None:
    def digest(edge: int) -> str:
        return program(f"y[i] = select(i - 16777216 > 2 * i + {edge}, x[i], 0.5)", i=4).digest

    assert digest(2**53) == digest(2**53)
    assert digest(2**53) != digest(2**53 - 16777216)


@pytest.mark.parametrize("function", ["gelu", "gelu_tanh", "silu"])
def test_functions_of_functions_do_not_double_what_is_inside(function: str) -> None:
    inner = "x[m]"
    for _ in range(28):
        inner = f"{function}({inner})"
    assert len(digests(f"y[m] = 1 + {inner}", f"y[m] = {inner} + 1", f"y[m] = {inner}")) == 2


def test_programs_that_are_not_the_same() -> None:
    assert len(digests(*DIFFERENT)) == len(DIFFERENT)


def test_the_identity_stays_what_it_is() -> None:
    """Records are found by it: a change of the canonical text needs a migration."""
    assert (
        program("y[m, n] = gelu(sum[k](A[m, k] * B[k, n]) + b[n])", **SIZES).digest
        == "b57a549ddcc5a1c7"
    )
    assert (
        program("where n <= m; y[m] = logsumexp[n](x[m, n])", m=8, n=6).digest == "e44e49816a77e74e"
    )


WRITTEN = {
    "y[m,n] = gelu(sum[k](A[m,k] * B[k,n]) + bias[n]) + residual[m,n]": SIZES,
    "y[m,n] = relu(max(x[m,n], max(b[n], 0.5)) - c[m]) * silu(x[m,n] / d[n])": {"m": 8, "n": 6},
    "where n <= m; y[m,k] = sum[n](softmax[n](sum[d](q[m,d] * r[n,d]) / 4) * v[n,k])": {
        "m": 8,
        "n": 8,
        "k": 4,
        "d": 4,
    },
    "x: float32[40]; y[m] = sum[k](w[k] * inside(x[2 * (m + k) - 1], 0))": {"m": 8, "k": 4},
    "t: int32[8](index < 5); y[m,n] = E[t[m], n] * s[n] - select(m < n, p[m,n], 2)": {
        "m": 8,
        "n": 6,
    },
    "a[m] = mean[k](x[m,k]); y[m,k] = -(x[m,k] + a[m]) * g[k] * rsqrt(a[m] * a[m] + 1e-5)": {
        "m": 8,
        "k": 4,
    },
}


def check_writings(seed: int, count: int) -> None:
    chance = random.Random(seed)
    for text, extents in WRITTEN.items():
        made = program(text, **extents)
        for _ in range(count):
            other = rewritten(made, chance, chance.choice((1, 2, 6)))
            assert program(other).digest == made.digest, other


def test_a_program_is_the_same_in_any_writing() -> None:
    check_writings(1, 12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
def test_a_program_is_the_same_in_any_of_many_writings(seed: int) -> None:
    check_writings(seed, 300)


@settings(max_examples=20)
@given(programs(), st.randoms(use_true_random=False))
def test_random_programs_under_other_names(drawn, chance: random.Random) -> None:
    try:
        made = program(drawn[0], **drawn[1])
    except InputError:
        assume(False)
    assert program(renamed(str(made), chance)).digest == made.digest


def renamed(text: str, chance: random.Random) -> str:
    """With other names, operands and axes in another order."""
    names = [*re.findall(r"^(\w+)(?=:|\[| =)", text, re.MULTILINE), *re.findall(r"(\w+)=", text)]
    names = sorted({*names} - {"order", "leading"})
    chance.shuffle(names)
    new = {name: f"v{number}" for number, name in enumerate(names)}
    head, *lines = re.sub(r"\w+(?![\w(])", lambda m: new.get(m[0], m[0]), text).split("\n")
    axes = head.removeprefix("axes ").split(", ")
    chance.shuffle(axes)
    declared = list(itertools.takewhile(lambda line: ":" in line, lines))
    rest = lines[len(declared) :]
    chance.shuffle(declared)
    return "\n".join(["axes " + ", ".join(axes), *declared, *rest])
