"""The named operators against torch in float64, and what they refuse."""

import re
from pathlib import Path

import numpy as np
import pytest

from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.language.inputs import draw
from tilewright.spaces.named import named, names, operator

torch = pytest.importorskip("torch")
F = torch.nn.functional


def held_to(expected, name: str, **parameters) -> None:
    """The first output of an operator on drawn inputs is what ``expected`` makes of them."""
    made = operator(name, **parameters)
    assert program(str(made)) == made
    inputs = draw(made, 7)
    wide = {n: a.astype(np.int64 if a.dtype.kind == "i" else np.float64) for n, a in inputs.items()}
    found = evaluate(made, wide)[made.outputs[0].name]
    exact = expected(*(torch.from_numpy(np.ascontiguousarray(a)) for a in wide.values())).numpy()
    assert found.shape == exact.shape == made.outputs[0].shape
    np.testing.assert_allclose(found, exact, 1e-12, 1e-13)


def grouped(q, k, v, **options):
    shared = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(shared, 1) for x in (k, v))
    return F.scaled_dot_product_attention(q, k, v, **options)


def windowed(queries: int, keys: int, most: int):
    distance = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)[None]
    return (distance >= 0) & (distance < most)


def alibi(q, k, slope, v, causal=True):
    place = torch.arange(k.shape[2] - q.shape[2], k.shape[2])[:, None]
    distance = torch.arange(k.shape[2])[None] - place
    bias = slope[:, None, None] * distance
    return grouped(q, k, v, attn_mask=bias.masked_fill((distance > 0) & causal, -torch.inf))


def softcapped(q, k, v):
    shared = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(shared, 1) for x in (k, v))
    scores = 2.0 * torch.tanh(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 / 2.0)
    past = k.shape[2] - q.shape[2]
    seen = torch.ones(q.shape[2], k.shape[2], dtype=bool).tril(past)
    return scores.masked_fill(~seen, -torch.inf).softmax(-1) @ v


def experts(expert, a, b):
    return torch.einsum("tk,tkn->tn", a, b[expert])


def rotary(x, cosine, sine):
    low, high = x.chunk(2, -1)
    angles = (1, x.shape[1], 1, x.shape[3])
    return x * cosine.view(angles) + torch.cat([-high, low], -1) * sine.view(angles)


IMAGE = {"n": 2, "c": 6, "h": 9, "w": 8, "o": 4, "r": 3, "s": 2}
LINE = {"n": 2, "c": 4, "w": 11, "o": 6, "r": 3}
HEADS = {"b": 2, "h": 4, "d": 8}
PREFILL = HEADS | {"i": 9, "j": 9}
DECODE = HEADS | {"i": 1, "j": 9}

CASES = [
    ("matmul", {"m": 5, "n": 4, "k": 3}, lambda a, b: a @ b),
    (
        "matmul",
        {"m": 5, "n": 4, "k": 3, "b": "col", "c": "col", "epilogue": "gelu(x + bias[n]) * x"},
        lambda a, b, bias: F.gelu(a @ b + bias) * (a @ b),
    ),
    ("matmul", {"m": 5, "n": 4, "k": 3, "dtype": "int8"}, lambda a, b: a @ b),
    ("bmm", {"batch": 6, "m": 5, "n": 4, "k": 3}, lambda a, b: a @ b),
    (
        "bmm",
        {"batch": 6, "m": 5, "n": 4, "k": 3, "shared": 3, "b": "col", "epilogue": "relu(x)"},
        lambda a, b: F.relu(a @ b.repeat_interleave(3, 0)),
    ),
    ("grouped_matmul", {"t": 9, "n": 4, "k": 3, "experts": 5}, experts),
    (
        "grouped_matmul",
        {"t": 9, "n": 4, "k": 3, "experts": 2, "rows": 4},
        lambda expert, a, b, row: experts(expert, a[row], b),
    ),
    ("conv2d", IMAGE, F.conv2d),
    (
        "conv2d",
        IMAGE | {"stride": 2, "padding": 1, "epilogue": "relu(x + bias[o]) + old[n,o,p,q]"},
        lambda i, f, b, old: F.relu(F.conv2d(i, f, b, 2, 1)) + old,
    ),
    (
        "conv2d",
        IMAGE | {"padding": 2, "dilation": 2, "groups": 2, "layout": "NHWC"},
        lambda i, f: F.conv2d(
            i.permute(0, 3, 1, 2), f.permute(0, 3, 1, 2), padding=2, dilation=2, groups=2
        ).permute(0, 2, 3, 1),
    ),
    ("conv2d", IMAGE | {"o": 6, "groups": 6}, lambda i, f: F.conv2d(i, f, groups=6)),
    (
        "conv2d",
        IMAGE | {"o": 12, "groups": 6, "stride": 3},
        lambda i, f: F.conv2d(i, f, groups=6, stride=3),
    ),
    (
        "conv2d_transposed",
        IMAGE | {"stride": 2, "padding": 1, "output_padding": 1, "epilogue": "relu(x + bias[o])"},
        lambda i, f, b: F.relu(F.conv_transpose2d(i, f, b, 2, 1, 1)),
    ),
    ("conv2d_transposed", IMAGE | {"padding": 1}, lambda i, f: F.conv_transpose2d(i, f, padding=1)),
    (
        "conv2d_transposed",
        IMAGE | {"stride": 3, "dilation": 2, "groups": 2, "layout": "NHWC"},
        lambda i, f: F.conv_transpose2d(
            i.permute(0, 3, 1, 2), f.permute(0, 3, 1, 2), stride=3, dilation=2, groups=2
        ).permute(0, 2, 3, 1),
    ),
    ("conv1d", LINE | {"padding": 1, "stride": 2}, lambda x, f: F.conv1d(x, f, None, 2, 1)),
    (
        "conv1d",
        LINE | {"dilation": 3, "groups": 2, "layout": "NWC"},
        lambda x, f: F.conv1d(x.mT, f.mT, dilation=3, groups=2).mT,
    ),
    ("softmax", {"r": 5, "c": 7}, lambda x: x.softmax(-1)),
    ("log_softmax", {"r": 5, "c": 7}, lambda x: x.log_softmax(-1)),
    ("logsumexp", {"r": 5, "c": 7}, lambda x: x.logsumexp(-1)),
    (
        "cross_entropy",
        {"r": 5, "c": 7},
        lambda label, x: F.cross_entropy(x, label, reduction="none"),
    ),
    ("layernorm", {"r": 5, "c": 7}, lambda x, w, b: F.layer_norm(x, (7,), w, b, 1e-5)),
    (
        "layernorm",
        {"r": 5, "c": 7, "eps": 0.5, "outputs": "y,mean,rstd"},
        lambda x, w, b: F.layer_norm(x, (7,), w, b, 0.5),
    ),
    ("rmsnorm", {"r": 5, "c": 7}, lambda x, w: F.rms_norm(x, (7,), w, 1e-6)),
    ("sum", {"shape": "4x5x6", "over": "1"}, lambda x: x.sum(1)),
    ("sum", {"shape": "4x5", "over": "0,1"}, lambda x: x.sum()),
    ("max", {"shape": "4x5x6", "over": "0,2"}, lambda x: x.amax((0, 2))),
    ("min", {"shape": "4x5x6", "over": "2,0"}, lambda x: x.amin((0, 2))),
    ("mean", {"shape": "4x5x6", "over": "0"}, lambda x: x.mean(0)),
    ("argmax", {"shape": "4x5x6", "over": "1"}, lambda x: x.argmax(1)),
    ("cumsum", {"shape": "4x5x6", "over": 1}, lambda x: x.cumsum(1)),
    (
        "cumsum",
        {"shape": "4x5", "over": 0, "kind": "reverse_exclusive"},
        lambda x: x.flip(0).cumsum(0).flip(0) - x,
    ),
    ("map", {"m": 5, "n": 4, "expression": "relu(x[n, m]) * s"}, lambda x, s: F.relu(x.T) * s),
    ("rope", {"b": 2, "t": 5, "h": 3, "d": 6}, rotary),
    ("swiglu", {"r": 5, "c": 7}, lambda gate, up: F.silu(gate) * up),
    ("embedding", {"t": 5, "d": 7, "words": 11}, lambda token, table: F.embedding(token, table)),
    (
        "rmsnorm_matmul",
        {"m": 5, "n": 4, "k": 8},
        lambda a, w, b: F.rms_norm(a, (8,), w, 1e-6) @ b,
    ),
    ("gated_matmul", {"m": 5, "n": 4, "k": 8}, lambda a, g, u: F.silu(a @ g) * (a @ u)),
    (
        "max_pool2d",
        {"n": 2, "c": 3, "h": 9, "w": 8, "r": 3, "stride": 2, "padding": 1},
        lambda x: F.max_pool2d(x, 3, 2, 1),
    ),
    ("max_pool2d", {"n": 2, "c": 3, "h": 9, "w": 8, "r": 2}, lambda x: F.max_pool2d(x, 2, 1)),
    (
        "avg_pool2d",
        {"n": 2, "c": 3, "h": 9, "w": 8, "r": 3, "stride": 2, "padding": 1},
        lambda x: F.avg_pool2d(x, 3, 2, 1),
    ),
    ("attention", PREFILL, grouped),
    ("attention", PREFILL | {"mask": "causal"}, lambda q, k, v: grouped(q, k, v, is_causal=True)),
    (
        "attention",
        PREFILL | {"mask": "causal", "kv": 2},
        lambda q, k, v: grouped(q, k, v, is_causal=True),
    ),
    ("attention", PREFILL | {"mask": "causal", "alibi": 1}, alibi),
    ("attention", PREFILL | {"mask": "causal", "softcap": 2, "kv": 1}, softcapped),
    (
        "attention",
        PREFILL | {"mask": "causal", "window": 3, "kv": 2},
        lambda q, k, v: grouped(q, k, v, attn_mask=windowed(9, 9, 3)),
    ),
    (
        "attention",
        PREFILL | {"i": 4, "mask": "causal", "window": 5},
        lambda q, k, v: grouped(q, k, v, attn_mask=windowed(4, 9, 5)),
    ),
    ("attention", DECODE | {"mask": "causal"}, grouped),
    ("attention", DECODE | {"mask": "causal", "alibi": 1}, alibi),
    ("attention", DECODE | {"kv": 2}, grouped),
    ("attention", DECODE | {"kv": 2, "softcap": 2.0}, softcapped),
]


@pytest.mark.parametrize(
    ("name", "parameters", "expected"),
    CASES,
    ids=[f"{name} {' '.join(f'{k}={v}' for k, v in given.items())}" for name, given, _ in CASES],
)
def test_an_operator_is_what_torch_says(name, parameters, expected) -> None:
    held_to(expected, name, **parameters)


def test_every_operator_has_a_case_and_an_example_that_reads() -> None:
    assert {name for name, _, _ in CASES} == set(names())
    for name in names():
        found = named(name)
        assert found.summary.endswith((".", ":")), name
        words = re.findall(r'(\w+)=("[^"]*"|\S+)', found.example)
        made = operator(name, **{word: value.strip('"') for word, value in words})
        assert program(str(made)) == made


def test_an_operator_is_a_short_file() -> None:
    folder = Path(__file__).parents[3] / "spaces" / "named"
    for name in names():
        (file,) = folder.rglob(f"{name}.py")
        assert len(file.read_text().splitlines()) <= 30, name


def test_layernorm_gives_its_statistics_as_well() -> None:
    made = operator("layernorm", r=5, c=7, outputs="y,mean,rstd")
    inputs = draw(made, 1)
    found = evaluate(made, inputs)
    x = inputs["x"].astype(np.float64)
    np.testing.assert_allclose(found["mean"], x.mean(1), 1e-12)
    np.testing.assert_allclose(found["rstd"], (x.var(1) + 1e-5) ** -0.5, 1e-12)


def test_a_new_operator_is_one_file(tmp_path, monkeypatch) -> None:
    import tilewright.spaces.named

    (tmp_path / "cubed.py").write_text(
        "from tilewright.spaces.language import Program, program\n"
        'EXAMPLE = "m=4"\n'
        'def cubed(m: int, dtype: str = "float32") -> Program:\n'
        '    """The third power."""\n'
        '    return program("y[m] = x[m] * x[m] * x[m]", dtype=dtype, m=m)\n'
    )
    named = tilewright.spaces.named
    monkeypatch.setattr(named, "__path__", [*named.__path__, str(tmp_path)])
    assert "cubed" in names()
    assert operator("cubed", m="3") == program("y[m] = x[m] * x[m] * x[m]", m=3)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        (
            "matmull",
            {},
            r"unknown operator 'matmull'; did you mean matmul\? known: argmax, attention",
        ),
        ("_parts", {}, "unknown operator '_parts'"),
        (["softmax"], {}, r"unknown operator \['softmax'\]"),
        ("softmax", {"r": 4, "c": 4, "z": 1}, "softmax has no parameter 'z'; allowed: r, c, dtype"),
        ("softmax", {"r": 4}, "softmax needs r, c; missing: c"),
        ("softmax", {"r": 4, "c": "x"}, "c='x' is not a whole number"),
        ("softmax", {"r": 4, "c": 2.5}, "c=2.5 is not a whole number"),
        (
            "softmax",
            {"r": 4, "c": 0},
            "c=0 is out of range; allowed: whole numbers from 1 to 16777216",
        ),
        ("softmax", {"r": 4, "c": 4, "dtype": 3}, "dtype=3 is not allowed; allowed: text"),
        ("softmax", {"r": 4, "c": 4, "dtype": "half"}, "unknown dtype 'half'"),
        ("rmsnorm", {"r": 4, "c": 4, "eps": "small"}, "eps='small' is not a number"),
        ("rmsnorm", {"r": 4, "c": 4, "eps": float("nan")}, "eps=nan is out of range"),
        ("matmul", {"m": 4, "n": 4, "k": 4, "a": "up"}, "a='up' is unknown; allowed: row, col"),
        ("matmul", {"m": 4, "n": 4, "k": 4, "epilogue": "x +"}, "malformed"),
        (
            "bmm",
            {"batch": 6, "m": 4, "n": 4, "k": 4, "shared": 4},
            "shared=4 does not divide batch",
        ),
        ("conv2d", IMAGE | {"groups": 4}, "groups=4 does not divide c=6; allowed: its divisors"),
        ("conv2d", IMAGE | {"groups": 0}, "groups=0 does not divide"),
        ("conv2d", IMAGE | {"r": 12}, "a window of 12 does not fit into 9 with padding=0"),
        ("conv2d", IMAGE | {"stride": 0}, "stride=0 is out of range; allowed: above 0, below"),
        ("conv2d", IMAGE | {"padding": -1}, "padding=-1 is out of range; allowed: from 0 on"),
        ("conv2d_transposed", IMAGE | {"padding": 9}, "padding=9 leaves nothing of 9 windows of 3"),
        ("conv2d", IMAGE | {"layout": "CHWN"}, "layout='CHWN' is unknown; allowed: NCHW, NHWC"),
        ("conv2d", IMAGE | {"epilogue": "x + bias[z]"}, "index 'z' is unknown"),
        ("attention", PREFILL | {"kv": 3}, "kv=3 does not divide h=4"),
        ("attention", PREFILL | {"i": 10}, "i=10 is out of range; allowed: 1 to 9"),
        ("attention", PREFILL | {"j": 2**24}, "allowed: above 0, below 16777216"),
        ("attention", PREFILL | {"window": 2**24}, "allowed: from 0 on, below 16777216"),
        ("attention", PREFILL | {"j": 0}, "j=0 is out of range; allowed: above 0"),
        ("attention", PREFILL | {"mask": "left"}, "mask='left' is unknown; allowed: none, causal"),
        ("attention", PREFILL | {"softcap": -1}, "softcap=-1.0 is out of range"),
        ("rope", {"b": 1, "t": 4, "h": 1, "d": 3}, "d=3 is odd, and has no halves"),
        ("sum", {"shape": "4xx5", "over": "0"}, "shape='4xx5' is no shape; allowed: such as"),
        ("sum", {"shape": "4x5", "over": "2"}, "over='2': no dimension '2'; allowed: 0 to 1"),
        ("cumsum", {"shape": "4x5", "over": 2}, "over=2 is no dimension; allowed: 0 to 1"),
        (
            "cumsum",
            {"shape": "4x5", "over": 1, "kind": "all"},
            "kind='all'; allowed: inclusive, exclusive, reverse",
        ),
        ("sum", {"shape": "4x5", "over": "1,1"}, "axis 'd1' is repeated; allowed: once"),
    ],
)
def test_what_an_operator_refuses(name, parameters, message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        operator(name, **parameters)
    assert "\n" not in str(raised.value)
