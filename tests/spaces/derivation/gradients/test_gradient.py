"""Gradients of programs equal differences in float64, for every named operator and more."""

import re

import pytest

from tests.spaces.derivation.gradients.differences import check
from tilewright.spaces.derivation.gradients.gradient import gradient
from tilewright.spaces.derivation.work import work
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import Program, program
from tilewright.spaces.named import names, operator

ATTENTION = {"b": 1, "h": 4, "i": 5, "j": 6, "d": 3}
OPERATORS: dict[str, list[tuple[dict[str, object], list[str]]]] = {
    "argmax": [],
    "attention": [
        (ATTENTION, ["q", "k", "v"]),
        (ATTENTION | {"kv": 2, "mask": "causal"}, ["q", "k", "v"]),
        (ATTENTION | {"mask": "causal", "softcap": 5.0}, ["q", "k", "v"]),
        (ATTENTION | {"mask": "causal", "alibi": 1}, ["q", "k", "v", "slope"]),
        (ATTENTION | {"mask": "causal", "window": 3, "kv": 2}, ["q", "k", "v"]),
    ],
    "avg_pool2d": [({"n": 2, "c": 2, "h": 5, "w": 6, "r": 3, "stride": 2, "padding": 1}, ["x"])],
    "bmm": [({"batch": 2, "m": 3, "n": 4, "k": 5}, ["A", "B"])],
    "conv1d": [({"n": 2, "c": 3, "w": 7, "o": 4, "r": 3, "padding": 1}, ["line", "filter"])],
    "conv2d": [
        (
            {"n": 2, "c": 3, "h": 5, "w": 4, "o": 4, "r": 3, "s": 3, "padding": 1},
            ["image", "filter"],
        ),
        (
            {"n": 2, "c": 3, "h": 5, "w": 4, "o": 4, "r": 3, "s": 3, "padding": 1, "stride": 2},
            ["image", "filter"],
        ),
        (
            {"n": 1, "c": 4, "h": 5, "w": 4, "o": 6, "r": 3, "s": 2, "groups": 2, "layout": "NHWC"}
            | {"epilogue": "relu(x + bias[o])"},
            ["image", "filter", "bias"],
        ),
    ],
    "conv2d_transposed": [
        (
            {"n": 1, "c": 3, "h": 4, "w": 3, "o": 4, "r": 3, "s": 3, "stride": 2, "padding": 1},
            ["image", "filter"],
        ),
    ],
    "cross_entropy": [({"r": 4, "c": 7}, ["x"])],
    "cumsum": [
        ({"shape": "3x5", "over": 1}, ["x"]),
        ({"shape": "5x3", "over": 0, "kind": "reverse_exclusive"}, ["x"]),
    ],
    "embedding": [({"t": 7, "d": 3, "words": 5}, ["table"])],
    "gated_matmul": [({"m": 4, "n": 5, "k": 6}, ["A", "gate", "up"])],
    "grouped_matmul": [({"t": 9, "n": 4, "k": 5, "experts": 3}, ["A", "B"])],
    "layernorm": [
        ({"r": 4, "c": 6}, ["x", "weight", "bias"]),
        ({"r": 4, "c": 6, "outputs": "y,mean,rstd"}, ["x", "weight", "bias"]),
    ],
    "log_softmax": [({"r": 4, "c": 6}, ["x"])],
    "logsumexp": [({"r": 4, "c": 6}, ["x"])],
    "map": [({"m": 3, "n": 4, "expression": "tanh(x[n, m]) * scale[n]"}, ["x", "scale"])],
    "matmul": [
        ({"m": 3, "n": 4, "k": 5}, ["A", "B"]),
        (
            {"m": 3, "n": 4, "k": 5, "epilogue": "gelu(x + bias[n]) + r[m,n]", "a": "col"},
            ["A", "B", "bias", "r"],
        ),
    ],
    "max": [({"shape": "3x4x5", "over": "1"}, ["x"])],
    "max_pool2d": [({"n": 2, "c": 2, "h": 6, "w": 5, "r": 3, "stride": 2, "padding": 1}, ["x"])],
    "mean": [({"shape": "3x4x5", "over": "0,2"}, ["x"])],
    "min": [({"shape": "3x4x5", "over": "0,2"}, ["x"])],
    "rmsnorm": [({"r": 4, "c": 6}, ["x", "weight"])],
    "rmsnorm_matmul": [({"m": 3, "n": 4, "k": 5}, ["A", "weight", "B"])],
    "rope": [({"b": 2, "t": 3, "h": 2, "d": 8}, ["x", "cosine", "sine"])],
    "softmax": [({"r": 4, "c": 6}, ["x"])],
    "sum": [({"shape": "3x4x5", "over": "0,2"}, ["x"])],
    "swiglu": [({"r": 4, "c": 6}, ["gate", "up"])],
}
"""Parameters of every operator, and the operands to differentiate by."""
CASES = [(name, *case) for name, cases in OPERATORS.items() for case in cases]


def test_every_operator_is_here() -> None:
    assert {*OPERATORS} == {*names()}


@pytest.mark.parametrize(("name", "parameters", "wrt"), CASES, ids=[case[0] for case in CASES])
def test_operators(name: str, parameters: dict[str, object], wrt: list[str]) -> None:
    check(operator(name, **parameters), wrt)


@pytest.mark.parametrize(
    ("name", "parameters", "wrt", "saved"),
    [
        ("attention", ATTENTION | {"kv": 2, "mask": "causal"}, ["q", "k", "v"], ["y", "lse"]),
        ("attention", ATTENTION | {"softcap": 5.0}, ["q", "k", "v"], ["y", "lse"]),
        ("softmax", {"r": 4, "c": 6}, ["x"], ["y"]),
        ("softmax", {"r": 4, "c": 6}, ["x"], ["lse"]),
        ("cross_entropy", {"r": 4, "c": 7}, ["x"], ["lse"]),
        ("logsumexp", {"r": 4, "c": 6}, ["x"], ["y"]),
        ("layernorm", {"r": 4, "c": 6}, ["x", "weight", "bias"], ["mean", "rstd"]),
        ("rmsnorm", {"r": 4, "c": 6}, ["x", "weight"], ["y_sum_rsqrt"]),
    ],
)
def test_saved_stages(
    name: str, parameters: dict[str, object], wrt: list[str], saved: list[str]
) -> None:
    made = check(operator(name, **parameters), wrt, saved)
    assert {*saved} <= {*made.operand}
    assert not {*saved} & {*made.stage}


def test_roots_that_are_no_stages_may_be_saved() -> None:
    """A root of several stages is one more, and one that is a stage keeps its name."""
    text = "s[r] = sum[c](x[r, c]); t[r] = sum[c](x[r, c] * x[r, c]); "
    more = "y[r, c] = x[r, c] / sqrt(t[r] + s[r] * s[r]) + sqrt(t[r] + s[r] * s[r])"
    made = program(f"{text}{more}", r=3, c=4)
    found = check(made, ["x"], ["t_sqrt"])
    assert "t_sqrt" in found.operand
    assert "t" not in found.stage
    named = program(f"{text}u[r] = rsqrt(t[r]); y[r, c] = x[r, c] * u[r] * s[r]", r=3, c=4)
    with pytest.raises(InputError, match=r"no stage of the program; stages: s, t, y$"):
        gradient(named, ["x"], ["t_rsqrt"])


TEXTS: dict[str, tuple[str, dict[str, int], list[str]]] = {
    "functions": (
        "y[i] = sin(x[i]) * cos(z[i]) + atan(x[i]) * expm1(z[i]) + log1p(x[i] * x[i]) "
        "+ exp2(x[i]) * sigmoid(z[i]) - erf(x[i]) + gelu_tanh(z[i]) + rsqrt(2 + x[i]) + silu(z[i])",
        {"i": 9},
        ["x", "z"],
    ),
    "powers": (
        "y[i] = pow(2 + x[i], z[i]) + atan2(x[i], 2 + z[i]) + sqrt(2 + x[i]) / (3 + z[i]) "
        "+ fmod(x[i] * 9, 3.5 + z[i])",
        {"i": 9},
        ["x", "z"],
    ),
    "selections": (
        "y[i] = max(x[i], z[i]) * min(x[i], 0.25) + abs(z[i]) + select(x[i] > z[i] and i < 7, "
        "x[i] * z[i], -z[i]) + relu(x[i])",
        {"i": 9},
        ["x", "z"],
    ),
    "transposed and diagonal": (
        "y[i] = x[i, i] * z[j0, i]".replace("j0", "3 - i"),
        {"i": 4},
        ["x", "z"],
    ),
    "parts": ("x: float32[9]; y[i] = x[i + 2] * x[i]", {"i": 5}, ["x"]),
    "groups": ("y[h, i] = x[h // 4, i] * z[h % 4, i]", {"h": 8, "i": 3}, ["x", "z"]),
    "groups that end early": ("y[h] = x[h // 4]", {"h": 7}, ["x"]),
    "groups from within": ("y[h] = x[(h + 2) // 4] * z[(h + 5) % 4]", {"h": 7}, ["x", "z"]),
    "rotations": ("y[i] = x[(i + 3) % 8] * x[(i - 2) % 8] + z[(i + 1) % 3]", {"i": 8}, ["x", "z"]),
    "digits": ("y[i, j] = x[4 * i + j]; s[k] = sum[i](y[i, k])", {"i": 3, "j": 4, "k": 4}, ["x"]),
    "digits with room": ("x: float32[14]; y[i, j] = x[4 * i + j + 1]", {"i": 3, "j": 4}, ["x"]),
    "shuffles": ("y[h, w] = x[h // 2, w // 2, 2 * (h % 2) + w % 2]", {"h": 6, "w": 4}, ["x"]),
    "both digits of one": ("y[h] = x[h // 4, h % 4] * z[h]", {"h": 12}, ["x", "z"]),
    "windows": (
        "x: float32[9]; y[p] = sum[r](inside(x[2 * p + r - 1], 0) * w[r])",
        {"p": 5, "r": 3},
        ["x", "w"],
    ),
    "windows of squares": (
        "x: float32[9]; y[p] = sum[r](inside(x[2 * p - r + 1], 0) * exp(x[p + 2] * w[r]))",
        {"p": 5, "r": 3},
        ["x", "w"],
    ),
    "windows with gaps": ("y[p] = sum[r](x[3 * p + r] * w[r])", {"p": 4, "r": 2}, ["x", "w"]),
    "tables": (
        "t: int32[i](index < 5); u: int32[i](index < 6); y[i] = x[t[i]] * z[u[i] // 2, t[i]]",
        {"i": 9},
        ["x", "z"],
    ),
    "sparse": (
        "row: int32[e](sorted < r); col: int32[e](index < 6); where row[e] == r; "
        "y[r, c] = sum[e](val[e] * x[col[e], c])",
        {"r": 5, "e": 17, "c": 4},
        ["val", "x"],
    ),
    "domains": (
        "a[i] = sum[j: j <= i](x[i, j] * w[j]); b[i] = sum[j: j > i](x[i, j] * w[j]); "
        "y[i] = a[i] * exp(b[i])",
        {"i": 5, "j": 4},
        ["x", "w"],
    ),
    "cumulative sums of a map": (
        "p[i, j] = exp(x[i, j]); where j <= i; y[i] = sum[j](p[i, j] * p[i, j])",
        {"i": 5, "j": 5},
        ["x"],
    ),
    "tied maxima": ("y[i] = max[j](x[i] * 0 + z[i, j]); -> y", {"i": 3, "j": 4}, ["z"]),
    "two softmaxes": (
        "p[i, j] = softmax[j](x[i, j] * a[j]); y[i] = logsumexp[j](p[i, j] * x[i, j])",
        {"i": 3, "j": 4},
        ["x", "a"],
    ),
    "a max that counts": ("y[i, j] = exp(x[i, j] - max[j](x[i, j]))", {"i": 3, "j": 4}, ["x"]),
    "outputs that are read": (
        "h[i] = tanh(x[i]); y[i] = h[i] * h[i]; z = sum[i](y[i]); -> y, h, z",
        {"i": 5},
        ["x"],
    ),
    "products": ("y[i] = prod[j, k](x[i, j] + z[k])", {"i": 3, "j": 2, "k": 3}, ["x", "z"]),
    "products of some": ("where j <= i; y[i] = prod[j](x[i, j])", {"i": 3, "j": 4}, ["x"]),
    "scalars": ("y[i] = x[i] * s + s * s", {"i": 5}, ["x", "s"]),
    "orders": (
        "x: float32[i, j](order=(1, 0), leading=8); y[i, j] = x[i, j] * x[i, j]; "
        "y: float32(order=(1, 0))",
        {"i": 5, "j": 4},
        ["x"],
    ),
    "variances": ("y[i] = var[j](x[i, j])", {"i": 3, "j": 6}, ["x"]),
}


@pytest.mark.parametrize("name", TEXTS)
def test_programs(name: str) -> None:
    text, extents, wrt = TEXTS[name]
    check(program(text, **extents), wrt)


@pytest.mark.parametrize(
    "made",
    [
        program(
            "h[r, j] = tanh(sum[i](x[r, i] * w[i, j]) + b[j]); y[r] = sum[j](h[r, j] * v[j])",
            r=3, i=4, j=5,
        ),
        program("y[r, c] = softmax[c](x[r, c])", r=3, c=4),
        program("y[r, c] = gelu(x[r, c])", r=3, c=4),
        program("y[r] = sum[c](sin(x[r, c]) * x[r, c])", r=3, c=4),
    ],
)  # fmt: skip
def test_gradients_of_gradients(made: Program) -> None:
    for _ in range(2):
        check(made, ["x"])
        made = gradient(made, ["x"])


def test_a_gradient_by_the_output_reads_nothing_else() -> None:
    made = gradient(program("y[r, c] = softmax[c](x[r, c])", r=4, c=8), ["x"], ["y"])
    assert [stage.reducer for stage in made.stages] == ["sum", None]
    assert {*made.operand} == {"y", "dy"}


def test_the_backward_of_attention_is_that_of_flash_attention() -> None:
    """Five products, one sum of dy * y, and no exponential but that of the scores."""
    made = gradient(operator("attention", **ATTENTION), ["q", "k", "v"], ["y", "lse"])
    products = [stage for stage in made.stages if stage.reducer == "sum"]
    assert len(products) == 6
    assert all(stage.reducer in (None, "sum") for stage in made.stages)
    (delta,) = [s for s in products if {read.name for read in s.body.reads} == {"dy", "y"}]
    assert len(delta.axes) == 3


@pytest.mark.parametrize(
    ("text", "wrt", "saved", "message"),
    [
        ("y[i] = x[i]", ["z"], [], "the program has no operand 'z'; operands: x"),
        ("y[i] = x[i]", [], [], "no operand is named to differentiate by; allowed: some of x"),
        (
            "t: int32[i](index < 4); y[i] = x[t[i]]",
            ["t"],
            [],
            "t holds whole numbers, which have no gradient; allowed: operands of floating point",
        ),
        (
            "y[i] = floor(x[i] * 2)",
            ["x"],
            [],
            "floor has no gradient: it is flat wherever it does not jump; allowed: operands that "
            "it does not read",
        ),
        (
            "y = argmax[i](x[i])",
            ["x"],
            [],
            "no output is of floating point; whole numbers have no gradient",
        ),
        (
            "y[i] = select(x[i] > 0, z[i], 1)",
            ["x"],
            [],
            "no output has a derivative in x; allowed: operands whose values outputs depend on",
        ),
        ("y[i] = x[i]", ["x"], ["p"], "saved 'p' is no stage of the program; stages: y"),
        (
            "y[i, j] = softmax[j](x[i, j])",
            ["x"],
            ["p"],
            "saved 'p' is no stage of the program; stages: y_max, y_sum, y, lse",
        ),
    ],
)
def test_what_has_no_gradient(text: str, wrt: list[str], saved: list[str], message: str) -> None:
    extents = {axis: 4 for axis in "ij" if re.search(rf"\b{axis}\b", text)}
    with pytest.raises(InputError) as refusal:
        gradient(program(text, **extents), wrt, saved)
    assert str(refusal.value) == message


def nth_gradient(made: Program, order: int) -> Program:
    """Return the gradient of the gradient, and so on."""
    return gradient(nth_gradient(made, order - 1), ["x"]) if order else made


def test_orders_beyond_what_fits_a_program() -> None:
    made = program("y[r, c] = gelu(softmax[c](x[r, c]))", r=3, c=4)
    with pytest.raises(InputError, match=r"^the gradient does not fit a program: .*; allowed: "):
        nth_gradient(made, 9)


@pytest.mark.parametrize(
    ("rows", "index"), [(12, "o // 4 * 2 + c"), (13, "o // 5 * 2 + c"), (12, "c + 2 * (o // 4)")]
)
def test_groups_are_solved_for_and_not_searched(rows: int, index: str) -> None:
    """The derivative by an element sums over the rows of its group alone."""
    made = program(f"x: float32[6,7]\ny[o,p] = sum[c](x[{index}, p] * f[o,c])", o=rows, p=7, c=2)
    check(made, ["x", "f"])
    assert work(gradient(made, ["x"])).flops <= 1.2 * work(made).flops


def test_a_grouped_convolution_costs_as_much_backward() -> None:
    made = operator("conv2d", n=1, c=8, h=6, w=6, o=12, r=3, s=3, padding=1, groups=4)
    assert work(gradient(made, ["image"])).flops == work(made).flops
