"""Suites: what is shipped is what was published, and files that are none are refused in a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.scheduler.suites.suite import Member, Suite, as_suite, read_suite, shipped_suites
from tilewright.scheduler.testing.landscape import MACHINE
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import detect_target
from tilewright.spaces.workloads.gradients import differentiable, gradient
from tilewright.spaces.workloads.served import workload_of

GOOD = """
title = "two products"

[[workloads]]
name = "small"
operator = "matmul"
parameters = { m = 8, n = 16, k = 32, epilogue = "relu(x + bias[n])" }
weight = 2.5

[[workloads]]
operator = "matmul"
parameters = { m = 16, n = 16, k = 16 }
"""


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "suite.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_file_is_read(tmp_path):
    suite = read_suite(written(tmp_path, GOOD))
    fused = workload("matmul m=8 n=16 k=32 epilogue='relu(x + bias[n])'")
    assert suite == Suite(
        "two products",
        (Member(fused, 2.5, "small"), Member(workload("matmul m=16 n=16 k=16"))),
    )
    assert [member.label for member in suite.members] == ["small", str(suite.members[1].workload)]
    assert as_suite(suite) is suite


def test_operators_of_any_kind_and_programs_may_stand_in_one(tmp_path):
    text = """
        [[workloads]]
        operator = "y[r] = sum[c](x[r, c] * x[r, c])"
        parameters = { r = 8, c = 16 }

        [[workloads]]
        operator = "softmax"
        parameters = { r = 8, c = 16, dtype = "bfloat16" }
    """
    mine = workload("y[r] = sum[c](x[r, c] * x[r, c])", r=8, c=16)
    named = workload("softmax r=8 c=16 dtype=bfloat16")
    found = read_suite(written(tmp_path, text))
    assert [member.workload for member in found.members] == [mine, named]


# Parameters, as published; embeddings, vectors of norms and biases are no products.
BERT_PARAMETERS, BERT_EMBEDDINGS = 109_482_240, (30_522 + 512 + 2) * 768
BERT_VECTORS = 25 * 2 * 768 + 12 * (4 * 768 + 3072 + 768) + 768
GPT_PARAMETERS, GPT_EMBEDDINGS = 124_439_808, (50_257 + 1024) * 768
GPT_VECTORS = 25 * 2 * 768 + 12 * (2304 + 768 + 3072 + 768)
LLAMA_PARAMETERS, LLAMA_EMBEDDING = 8_030_261_248, 128_256 * 4096
LLAMA_VECTORS = 65 * 4096
LLAMA_LAYERS = LLAMA_PARAMETERS - 2 * LLAMA_EMBEDDING - LLAMA_VECTORS
LARGE_PARAMETERS, LARGE_EMBEDDING = 70_553_706_496, 128_256 * 8192
LARGE_LAYERS = LARGE_PARAMETERS - 2 * LARGE_EMBEDDING - 161 * 8192
SHARDS = 8


def attention(queries: int, keys: int, hidden: int, layers: int) -> int:
    """FLOPs of all scores and contexts."""
    return 4 * queries * keys * hidden * layers


FLOPS = {
    ("bert-base", None): 2 * 128 * (BERT_PARAMETERS - BERT_EMBEDDINGS - BERT_VECTORS - 768**2)
    + 2 * 768**2
    + attention(128, 128, 768, 12),
    ("gpt-2", "prefill"): 2 * 1024 * (GPT_PARAMETERS - GPT_EMBEDDINGS - GPT_VECTORS)
    + 2 * 50_257 * 768
    + attention(1024, 1025, 768, 12) // 2,
    ("gpt-2", "decode"): 2 * (GPT_PARAMETERS - GPT_EMBEDDINGS - GPT_VECTORS)
    + 2 * 50_257 * 768
    + attention(1, 1024, 768, 12),
    ("resnet-50", None): 2 * 4_089_184_256,
    ("inception-v3", None): 2 * 5_713_216_096,
    ("llama-3-8b", "prefill"): 2 * (2048 * LLAMA_LAYERS + LLAMA_EMBEDDING)
    + attention(2048, 2049, 4096, 32) // 2,
    ("llama-3-8b", "decode"): (1 + 8 + 64)
    * (2 * (LLAMA_LAYERS + LLAMA_EMBEDDING) + attention(1, 1024, 4096, 32)),
    ("llama-3-70b", "prefill-tp8"): (
        2 * (2048 * LARGE_LAYERS + LARGE_EMBEDDING) + attention(2048, 2049, 8192, 80) // 2
    )
    // SHARDS,
    ("llama-3-70b", "decode-tp8"): (1 + 8 + 64)
    * (2 * (LARGE_LAYERS + LARGE_EMBEDDING) + attention(1, 1024, 8192, 80))
    // SHARDS,
}
"""Of a pass, from the numbers of parameters: two for each weight and token, and half of the scores
where a token looks at those before it alone. Those of images are as published for torchvision."""
LITTLE = 2e-3
"""The share that norms, softmax and activations may add."""


@pytest.mark.parametrize(("name", "section"), FLOPS)
def test_a_shipped_suite_computes_what_its_model_does(name, section):
    suite = read_suite(name)
    suite = suite if section is None else suite.section(section)
    found = sum(m.weight * m.workload.flops for m in suite.members)
    assert found == pytest.approx(FLOPS[name, section], rel=LITTLE)
    assert all(member.name for member in suite.members)


@pytest.mark.parametrize("name", shipped_suites())
def test_a_shipped_suite_can_be_tuned(name):
    for member in read_suite(name).members:
        bfloat16 = "bfloat16" in {array.dtype for array in member.workload.operands}
        target = detect_target("cuda:sm_90a") if bfloat16 else MACHINE
        assert space_for(member.workload, target).templates


FUSED = (
    '[[workloads]]\noperator = "matmul"\nparameters = { m = 8, n = 8, k = 8, epilogue = "%s" }\n'
)
ONE = '[[workloads]]\noperator = "matmul"\nparameters = { m = 8, n = 8, k = 8 }\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "it has no workloads; allowed: at least one [[workloads]]"),
        ("workloads = []", "it has no workloads"),
        ("workloads = 3", "workloads are no list"),
        ("workloads = [3]", "workload 1: 3 is no table of name, operator, parameters, weight"),
        ("colour = 1\n" + ONE, "unknown key 'colour'; allowed: title, workloads"),
        ("title = 1\n" + ONE, "title=1 is no text"),
        (ONE + "colour = 1", "workload 1: unknown key 'colour'; allowed: name, operator"),
        (ONE + "name = 1", "workload 1: name=1 is no text"),
        (ONE + 'name = "a\\u001b[31mb"', "is no text of one line that can be printed"),
        (ONE + "weight = -1", "workload 1: weight=-1 is out of range; allowed: finite numbers"),
        (ONE + "weight = 0", "workload 1: weight=0 is out of range"),
        (ONE + "weight = nan", "workload 1: weight=nan is out of range"),
        (ONE + "weight = true", "workload 1: weight=True is no number"),
        (ONE + 'weight = "2"', "workload 1: weight='2' is no number"),
        (ONE + f"weight = 1{'0' * 400}", "workload 1: weight=1000"),
        (ONE + ONE, "is in it twice; allowed: once, and a weight"),
        (FUSED % "x + b[n]" + FUSED % "c[n] + x", "is in it twice; allowed: once, and a weight"),
        (
            ONE + ONE.replace("matmul", "conv"),
            "workload 2: unknown operator 'conv'; did you mean conv2d? known: argmax",
        ),
        (ONE.replace('"matmul"', "1"), "workload 1: operator=1 is no text; allowed: a name or"),
        ("[[workloads]]\nweight = 1", "workload 1: operator=None is no text; allowed: a name"),
        (ONE.replace("{ m = 8, n = 8, k = 8 }", "3"), "workload 1: parameters=3 are no table"),
        (ONE.replace("m = 8", "m = 0"), "workload 1: m=0 is out of range"),
        (ONE.replace("m = 8", "m = 8.5"), "workload 1: m=8.5 is not a whole number"),
        (ONE.replace("m = 8, ", ""), "workload 1: matmul needs m, n, k; missing: m"),
        (ONE.replace("k = 8", 'k = 8, epilogue = "f(x)"'), "unknown function 'f'"),
        ("workloads = [", "it is no TOML"),
        (b"\xff\xfe", "it is no TOML"),
        ("a = " + "[" * 100_000, "it is no TOML"),
        ("#" * (1 << 20) + "\n", "it is larger than"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(tmp_path, text, says):
    path = written(tmp_path, text)
    with pytest.raises(InputError) as error:
        read_suite(path)
    message = str(error.value)
    assert message.startswith("suite '/")
    assert says in message
    assert "\n" not in message
    assert len(message) < 400


@pytest.mark.parametrize("name", ["no/such/file.toml", ".", "a\0b", "x" * 5000])
def test_a_file_that_cannot_be_read_is_said_with_what_is_shipped(name):
    with pytest.raises(InputError, match=r"allowed: a TOML file, or one of bert-base, gpt-2"):
        read_suite(name)


def test_what_is_no_suite_is_refused():
    with pytest.raises(InputError, match="3 is no suite"):
        as_suite(3)
    with pytest.raises(InputError, match="no workloads"):
        Suite("nothing", ())


@pytest.mark.parametrize(("asked", "wrt"), [("true", "A,B,bias"), ('"A,bias"', "A,bias")])
def test_gradients_follow_their_workloads(asked: str, wrt: str, tmp_path: Path) -> None:
    text = f"""
        [[workloads]]
        operator = "matmul m=8 n=16 k=32 epilogue='gelu(x + bias[n])'"
        name = "up"
        weight = 3
        gradient = {asked}
    """
    first, second = read_suite(written(tmp_path, text)).members
    assert second.workload == workload_of(gradient(first.workload, wrt))
    assert first.weight == second.weight == 3
    assert second.label == "gradient of up"


@pytest.mark.parametrize(
    ("operator", "asked", "message"),
    [
        ("matmul m=8 n=8 k=8", "3", "gradient=3; allowed: true, or operands such as 'x,w'"),
        ("matmul m=8 n=8 k=8", '"C"', "the program has no operand 'C'; operands: A, B"),
        ("argmax shape=4x5 over=1", "true", "no output is of floating point"),
    ],
)
def test_gradients_that_are_not_there(
    operator: str, asked: str, message: str, tmp_path: Path
) -> None:
    text = f"[[workloads]]\noperator = '{operator}'\ngradient = {asked}\n"
    with pytest.raises(InputError, match=f"workload 1: {message}"):
        read_suite(written(tmp_path, text))


@pytest.mark.slow
def test_every_shipped_suite_has_gradients() -> None:
    refused = {}
    for name in shipped_suites():
        for member in read_suite(name).members:
            try:
                differentiable(member.workload)
            except InputError as reason:
                refused[member.label] = str(reason)
    assert refused == {}
