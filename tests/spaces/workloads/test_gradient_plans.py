"""Plans of gradients are right, and none is in another one's shadow."""

from __future__ import annotations

import pytest

from tests.spaces.derivation.gradients.differences import check
from tilewright import gradient_plans
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program
from tilewright.spaces.operators import as_workload
from tilewright.spaces.staged.division import ON_CPU, ON_GPU

ATTENTION = "attention b=1 h=2 i=16 j=16 d=4 mask=causal"
GELU = 'matmul m=5 n=6 k=64 epilogue="gelu(x + bias[n])"'
CASES: dict[str, tuple[str, str, list[str]]] = {
    "attention": (ATTENTION, "q,k,v", ["", "lse", "y,lse"]),
    "softmax": ("softmax r=4 c=32", "x", ["y"]),
    "layernorm": ("layernorm r=4 c=64", "x,weight,bias", ["", "rstd", "mean,rstd"]),
    "a product and its activation": (GELU, "A,B,bias", ["", "C_sum"]),
    "nothing to save": ("swiglu r=3 c=4", "gate,up", [""]),
}


@pytest.mark.parametrize("name", CASES)
def test_each_is_the_gradient(name: str) -> None:
    text, wrt, wanted = CASES[name]
    found = gradient_plans(text, wrt)
    assert {*wanted} <= {",".join(each.saved) for each in found}
    for each in found:
        made = check(as_workload(text).written, wrt.split(","), each.saved)
        assert made.digest == each.backward.digest
        assert {*each.saved} <= {*each.backward.operand}
        assert {*each.saved} <= {output.name for output in each.forward.outputs}


@pytest.mark.parametrize("costs", [ON_CPU, ON_GPU], ids=["CPU", "GPU"])
def test_more_bytes_cost_less(costs) -> None:
    found = gradient_plans("attention b=1 h=2 i=64 j=64 d=16", "q,k,v", costs=costs)
    bytes, priced = zip(*((each.bytes, each.cost(costs)) for each in found), strict=True)
    assert len(found) > 2
    assert [*bytes] == sorted(bytes)
    assert [*priced] == sorted({*priced}, reverse=True)


def test_what_is_kept_is_counted() -> None:
    """The derivative that the gradient is given comes from elsewhere."""
    (found,) = gradient_plans("softmax r=4 c=32", "x")
    assert [array.name for array in found.kept] == ["y"]
    assert found.bytes == 4 * 4 * 32
    norm = gradient_plans("layernorm r=4 c=64 dtype=bfloat16", "x,weight")[-1]
    assert norm.saved == ("mean", "rstd")
    assert norm.bytes == 2 * 4 * 64 + 2 * 64 + 2 * 4 * 4


def test_a_norm_in_place_keeps_its_statistics() -> None:
    """An array that is there anyway costs nothing: so ``y`` stands for ``x``."""
    text, wrt = "layernorm r=4 c=64", "x,weight,bias"
    found = gradient_plans(text, wrt, solved="x", held="y,weight,bias")
    least = found[0]
    assert (least.saved, least.solved, least.bytes) == (("rstd", "y"), ("x",), 4 * 4)
    made = check(as_workload(text).written, wrt.split(","), least.saved, solved=least.solved)
    assert made.digest == least.backward.digest
    assert all(each.bytes >= 4 * 4 * 64 for each in found[1:])
    (own,) = gradient_plans("log_softmax r=4 c=64", "x", solved="x", held="y")
    assert (own.bytes, [o.name for o in own.forward.outputs]) == (0, ["y"])


def test_what_has_a_root_taken_of_it_is_no_operand() -> None:
    """It is drawn with any sign: the root is saved in its place."""
    found = gradient_plans("rmsnorm r=4 c=64", "x,weight")
    assert [each.saved for each in found] == [(), ("y_sum_rsqrt",)]


def test_errors_are_those_of_the_gradient() -> None:
    with pytest.raises(InputError, match="floor has no gradient"):
        gradient_plans(program("y[i] = floor(x[i])", i=4), "x")
    with pytest.raises(InputError, match="the program has no operand 'z'"):
        gradient_plans("softmax r=4 c=8", "z")
    with pytest.raises(InputError, match="held 'z' is no array; arrays: x, y_max, y_sum, y, lse"):
        gradient_plans("softmax r=4 c=8", "x", held="z")
    with pytest.raises(InputError, match="solved 'z' is no operand of the program; operands: x"):
        gradient_plans("softmax r=4 c=8", "x", solved="z")
    with pytest.raises(InputError, match="x cannot be solved for in any stage; allowed: operands"):
        gradient_plans("softmax r=4 c=8", "x", solved="x")
