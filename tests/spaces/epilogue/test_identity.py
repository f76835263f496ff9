"""Epilogues that compute the same identify one product; others do not."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.spaces.epilogue.test_expression import X, references
from tilewright.spaces.epilogue.expression import Epilogue
from tilewright.spaces.language.tree import Binary, Call, Expression, Negation, Number, Read
from tilewright.spaces.operators import workload, workload_from_json
from tilewright.spaces.workloads.served import workload_of
from tilewright.spaces.workloads.words import matmul
from tilewright.spaces.workloads.workload import Workload


def fused(epilogue: str, **parameters: Any) -> Workload:
    return workload_of(matmul(m=5, n=7, k=3, epilogue=epilogue, **parameters))


EQUAL = {
    "sums": ("x + bias[n] + residual[m,n]", "residual[m,n] + (x + bias[n])", "r[m,n] + (b[n] + x)"),
    "differences": ("x - (a[n] + b[m])", "x - b[m] - a[n]", "-(a[n] - x + b[m])"),
    "products": ("x * scale * row[m]", "row[m] * (s * x)"),
    "quotients": ("x / a / b[n]", "x / (b[n] * a)", "x / b[n] / a"),
    "constants": ("x / 4 + 1 + 1", "2 + 0.25 * x"),
    "nothing": ("x", "x * 1", "0 + x", "--x"),
    "gelu": ("gelu(x + b[n])", "0.5 * (b[n] + x) * (1 + erf((x + b[n]) * 0.7071067811865476))"),
    "silu": ("silu(x)", "x * sigmoid(x)", "x / (1 + exp(-x))"),
    "relu": ("relu(x)", "max(x, 0)", "max(0, x)"),
    "rsqrt": ("x * rsqrt(v[m])", "x / sqrt(v[m])"),
    "like operands": ("x + a[n] * b[n]", "x + b[n] * a[n]"),
    "a name of the language's": ("x + mean[n] + y", "x + b[n] + size"),
}

DIFFERENT = (
    "x",
    "-x",
    "x + b[n]",
    "x + b[m]",
    "x + b",
    "x + b[m,n]",
    "x + b[n,m]",
    "x - b[m,n]",
    "b[m,n] - x",
    "x * x + b[m,n]",
    "x + b[m,n] * b[m,n]",
    "x + b[n] + b[n]",
    "x + b[n] + c[n]",
    "x + b[n] + c[m]",
    "x / b[n]",
    "b[n] / x",
    "x * 2",
    "x * 2.5",
    "x + 2",
    "x / (b[n] / c[m])",
    "x / b[n] / c[m]",
    "(x + b[n]) * c",
    "x + b[n] * c",
    "relu(x) + b[n]",
    "relu(x + b[n])",
    "min(x, 0)",
    "gelu(x)",
    "gelu_tanh(x)",
    "silu(x)",
    "float16(x) + b[n]",
    "float16(x + b[n])",
)


@pytest.mark.parametrize("name", EQUAL)
def test_one_epilogue_written_in_several_ways(name: str) -> None:
    assert len({fused(text).key for text in EQUAL[name]}) == 1
    assert len({str(fused(text)) for text in EQUAL[name]}) == len(EQUAL[name])


def test_epilogues_that_are_not_the_same() -> None:
    assert len({fused(text).key for text in DIFFERENT}) == len(DIFFERENT)


def test_what_else_identifies_a_product_counts_beside_an_epilogue() -> None:
    others = ({"m": 6}, {"out": "float64"}, {"c": "col"}, {"batch": 2})
    others += ({"heads": 2, "a": "col"},)  # in rows of A they would be rows of one product
    made = [workload("matmul", **{"m": 5, "n": 7, "k": 3} | o, epilogue="x + b[n]") for o in others]
    assert len({each.key for each in made}) == len(others)
    by_batch, by_head = (f"x + b[{axis},n]" for axis in ("batch", "heads"))
    several = {"batch": 2, "heads": 2, "a": "col"}
    assert fused(by_batch, **several).key != fused(by_head, **several).key


def test_a_product_without_an_epilogue_keeps_its_key() -> None:
    plain = workload("matmul", m=5, n=7, k=3)
    assert (
        plain.key == str(plain) == "matmul m=5 n=7 k=3 dtype=float32 out=float32 a=row b=row c=row"
    )


def test_the_identity_stays_what_it_is() -> None:
    """Records are found by it: a change of it needs a migration."""
    assert fused("gelu(x + bias[n]) * scale + residual[m,n]").key.endswith(
        " epilogue=a75749fc710dfe34"
    )


def test_each_spelling_keeps_its_own_operands() -> None:
    one, other = fused("x + bias[n] + residual[m,n]"), fused("r[m,n] + (x + b[n])")
    assert one.key == other.key
    assert [o.name for o in one.inputs] == ["A", "B", "bias", "residual"]
    assert [o.name for o in other.inputs] == ["A", "B", "r", "b"]
    assert one == other
    assert workload_from_json(other.to_json()) == other
    assert one.words == other.words


def nodes(inner):
    """Constants stay small, for sums of large ones depend on their order."""
    calls = st.builds(Call, st.sampled_from(["gelu", "silu", "relu", "tanh"]), st.tuples(inner))
    most = st.builds(Call, st.sampled_from(["max", "min"]), st.tuples(inner, inner))
    binaries = st.builds(Binary, st.sampled_from("+-*/"), inner, inner)
    return binaries | calls | most | st.builds(Negation, inner)


numbers = st.sampled_from([0.0, 0.5, 1.0, 3.0]).map(Number)
leaves = numbers | references | st.just(X)
expressions = st.recursive(leaves, nodes, max_leaves=12).filter(lambda e: X in e.walk())


@settings(max_examples=60, deadline=None)
@given(expressions, st.randoms(use_true_random=False))
def test_random_epilogues_in_another_order_under_other_names(
    expression: Expression, chance: random.Random
) -> None:
    names = sorted(Epilogue(expression).operands)
    new = dict(zip(names, chance.sample([f"v{i}" for i in range(9)], len(names)), strict=True))
    again = respelt(expression, {"x": "x", **new}, chance)
    assert fused(str(Epilogue(again))).key == fused(str(Epilogue(expression))).key


def respelt(node: Expression, names: dict[str, str], chance: random.Random) -> Expression:
    """The same with other names, terms and factors exchanged, and differences as sums."""

    def again(inner: Expression) -> Expression:
        return respelt(inner, names, chance)

    match node:
        case Read(name, indices):
            return Read(names[name], indices)
        case Negation(inner):
            return chance.choice([Negation, lambda x: Binary("*", x, Negation(Number(1.0)))])(
                again(inner)
            )
        case Binary("-", left, right):
            return Binary("+", Negation(again(right)), again(left))
        case Binary("+" | "*" as operator, left, right):
            first, second = chance.sample([again(left), again(right)], 2)
            return Binary(operator, first, second)
        case Binary(operator, left, right):
            return Binary(operator, again(left), again(right))
        case Call(function, arguments):
            return Call(function, tuple(map(again, arguments)))
    return node
