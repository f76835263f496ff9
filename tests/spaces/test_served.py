"""Programs that today's templates serve, as workloads that compute the same."""

import numpy as np
import pytest

from spaces.language import program
from spaces.language.evaluation import evaluate
from spaces.named import operator
from spaces.operators import workload
from spaces.served import matmul_workload, served
from spaces.target import detect_target

SIZES = {"i": 6, "j": 5, "k": 4}


@pytest.mark.parametrize(
    ("text", "dtype", "words"),
    [
        ("y[i,j] = sum[k](a[i,k] * b[k,j])", "float32", "m=6 n=5 k=4"),
        ("y[j,i] = sum[k](a[k,i] * b[k,j])", "float64", "m=5 n=6 k=4 a=col dtype=float64"),
        ("y[i,j] = sum[k](b[j,k] * a[i,k])", "bfloat16", "m=6 n=5 k=4 b=col dtype=bfloat16"),
        (
            "s[i,j] = sum[k](a[i,k] * b[k,j]); y[j,i] = gelu(s[i,j] + c[i]) / (s[i,j] + r[j,i])",
            "float32",
            'm=5 n=6 k=4 a=col b=col epilogue="gelu(x + c[n]) / (x + r[m,n])"',
        ),
        (
            "a: float32[k,i](order=(1, 0)); y: float32(order=(1, 0))\n"
            "y[i,j] = sum[k](a[k,i] * b[k,j])",
            "float32",
            "m=6 n=5 k=4 c=col",
        ),
        ("y[i,j] = sum[k](a[i,k] * b[k,j])", "int8", "m=6 n=5 k=4 dtype=int8"),
    ],
)
def test_a_product_is_a_workload_that_computes_the_same(text, dtype, words) -> None:
    made = program(text, dtype=dtype, **SIZES)
    found = matmul_workload(made)
    if "order" in text or text.startswith("s["):  # written with the axes where they were
        assert not isinstance(found, str), found
    else:
        assert str(found) == str(workload(f"matmul {words}"))
    inputs = found.make_inputs(3)
    generic = {o.name: np.zeros(o.shape) for o in made.operands}
    for ours, theirs in names(made, found).items():
        shape = made.operand[ours].shape
        array = inputs[theirs].astype(np.float64)
        generic[ours] = array if array.shape == shape else array.T
    if dtype == "int8":
        generic = {name: array.astype(np.int64) for name, array in generic.items()}
    expected = evaluate(made, generic)[made.outputs[0].name]
    np.testing.assert_allclose(found.reference(inputs), expected, 1e-12)


def names(made, found) -> dict[str, str]:
    """Our operands' names to the workload's: the factor with the rows is its A."""
    rows = made.stage[made.outputs[0].name].axes[0]
    product = next(stage for stage in made.stages if stage.reducer)
    first = {read.name: rows in read.axes for read in product.body.reads}
    pairs = {name: "A" if is_first else "B" for name, is_first in first.items()}
    return pairs | {o.name: o.name for o in found.epilogue_inputs}


def test_the_named_product_is_the_workload_of_that_name() -> None:
    given = {"m": 6, "n": 5, "k": 4, "b": "col", "epilogue": "relu(x + bias[n])"}
    assert str(matmul_workload(operator("matmul", **given))) == str(workload("matmul", **given))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("y[i,j] = max[k](a[i,k] * b[k,j])", "reductions: max; needs one product of matrices"),
        ("y[i,j] = a[i,j]", "reductions: none; needs one product of matrices"),
        ("where k <= i; y[i,j] = sum[k](a[i,k] * b[k,j])", "no condition"),
        ("y[i] = sum[k](a[i,k] * b[k])", "needs two that are kept and one that is summed"),
        ("y[i,j] = sum[k](a[i,k] * b[k,j] * 2)", "needs two entries of matrices"),
        ("y[i,j] = sum[k](a[i,k] * b[k,j,i])", "reads b.k, j, i.; needs the axes k and j"),
        ("a: float32[9,k]; y[i,j] = sum[k](a[i,k] * b[k,j])", "needs a whole dense array"),
        ("y[i,j] = sum[k](a[i+1,k] * b[k,j])", "needs a whole dense array"),
        ("a: float16; y[i,j] = sum[k](a[i,k] * b[k,j])", "multiplies float16 by float32"),
        ("y[i,j] = sum[k](a[i,k] * b[k,j]) + x[i]", "another name than x, A, B, C"),
        ("y[i,j] = sum[k](a[i,k] * b[k,j]) + i", "'m' is an axis"),
        ("y[i,j] = log(sum[k](a[i,k] * b[k,j]))", "unknown function 'log'"),
        ("z[i,j] = sum[k](a[i,k] * b[k,j]); y[i,j] = z[i,0]", "needs each sum where it is"),
    ],
)
def test_why_a_program_is_not_served_yet(text: str, reason: str) -> None:
    sizes = {name: extent for name, extent in SIZES.items() if name in text}
    made = program(text, **sizes)
    found = matmul_workload(made)
    assert isinstance(found, str)
    assert reason.replace(".", "") in found.replace("[", "").replace("]", "").replace(".", "")
    for name in ("cpu", "cuda:sm_90a"):
        assert {why for _, why in served(made, detect_target(name))} == {found}


def test_templates_say_themselves_what_they_refuse() -> None:
    target = detect_target("cpu", 1)
    wide = dict(served(operator("matmul", m=512, n=64, k=64), target))
    assert wide["contraction"] is None
    assert "rows" in wide["thin_stream"]
    assert all(dict(served(operator("matmul", m=64, n=64, k=64, dtype="int8"), target)).values())
