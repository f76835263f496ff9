"""Programs that today's templates serve, as workloads that compute the same."""

import re
import shlex

import numpy as np
import pytest

from tilewright.spaces.errors import InputError
from tilewright.spaces.language import Program, program
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.named import operator
from tilewright.spaces.operators import as_workload, parameters_of, workload
from tilewright.spaces.target import Target, detect_target
from tilewright.spaces.workloads.product import product_of
from tilewright.spaces.workloads.served import matmul_of, served, workload_of

SIZES = {"i": 6, "j": 5, "k": 4, "h": 3, "l": 2}


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
        ("y[i] = sum[k](a[i,k] * b[k])", "float32", "m=6 n=1 k=4"),
        (
            "y[i,j,h] = relu(sum[k,l](a[i,j,k,l] * b[h,k,l]) + c[h]) * s + r[i,j]",
            "float32",
            'm=30 n=3 k=8 b=col epilogue="relu(x + c[n]) * s[] + r[m]"',
        ),
    ],
)
def test_a_product_is_a_workload_that_computes_the_same(text, dtype, words) -> None:
    made = program(text, dtype=dtype, **sizes(text))
    found = matmul_of(made)
    if "order" in text or text.startswith("s["):  # written with the axes where they were
        assert not isinstance(found, str), found
    else:
        assert found.text == str(workload(f"matmul {words}"))
    inputs = found.make_inputs(3)
    generic = {o.name: np.zeros(o.shape) for o in made.operands}
    for ours, theirs in names(made, found).items():
        generic[ours] = as_laid_out(made.operand[ours], inputs[theirs].astype(np.float64))
    if dtype == "int8":
        generic = {name: array.astype(np.int64) for name, array in generic.items()}
    expected = evaluate(made, generic)[made.outputs[0].name]
    np.testing.assert_allclose(found.reference(inputs), expected.reshape(found.output.shape), 1e-12)


BATCHES = {
    "bmm batch=3 m=5 n=4 k=6 b=col": "batch=3 m=5 n=4 k=6 b=col",
    "bmm batch=1 m=5 n=4 k=6": "m=5 n=4 k=6",
    # heads of a group lie next to each other, so they are rows of one product
    'bmm batch=6 m=5 n=4 k=6 shared=3 epilogue="relu(x + bias[n]) + r[batch,m,n]"': (
        'batch=2 m=15 n=4 k=6 epilogue="relu(x + bias[n]) + r[batch,m,n]"'
    ),
    "bmm batch=6 m=5 n=4 k=6 shared=6 dtype=bfloat16": "m=30 n=4 k=6 dtype=bfloat16",
    # a number for each head keeps them apart
    'bmm batch=6 m=5 n=4 k=6 shared=3 epilogue="x * slope[batch]"': (
        'batch=2 heads=3 m=5 n=4 k=6 epilogue="x * slope[batch,heads]"'
    ),
    "axes h=3, i=5, j=4, k=6; y[h,i,j] = sum[k](A[h,k,i] * B[k,j])": "heads=3 m=5 n=4 k=6 a=col",
    "axes h=3, i=5, j=4, k=6; y[h,i,j] = sum[k](B[i,k] * A[h,k,j])": (
        "heads=3 m=4 n=5 k=6 a=col b=col c=col"
    ),
    "axes h=3, t=2, i=5, j=4, k=6; y[h,t,i,j] = exp(sum[k](A[h,t,i,k] * B[h,t,j,k]) + r[h,t,i])": (
        'batch=6 m=5 n=4 k=6 b=col epilogue="exp(x + r[batch,m])"'
    ),
    # heads of a token next to each other
    "axes i=5, h=3, j=4, k=6; y[i,h,j] = sum[k](A[h,i,k] * B[k,h,j])": (
        "batch=3 m=5 n=4 k=6 b=k-batch-n c=m-batch-n"
    ),
    "axes g=2, r=3, i=5, j=4, k=6; y[g,r,i,j] = sum[k](A[i,g,r,k] * B[j,g,k])": (
        "batch=2 heads=3 m=5 n=4 k=6 a=m-batch-heads-k b=n-batch-k"
    ),
    # two axes of a batch that are apart in some array
    "axes b=2, h=3, i=5, j=4, k=6; y[b,h,i,j] = sum[k](A[b,i,h,k] * B[b,j,h,k])": (
        "outer=2 batch=3 m=5 n=4 k=6 a=outer-m-batch-k b=outer-n-batch-k"
    ),
    "axes b=2, h=3, i=5, j=4, k=6; y[h,b,i,j] = sum[k](A[b,i,h,k] * B[h,k,b,j])": (
        "outer=3 batch=2 m=5 n=4 k=6 a=batch-m-outer-k b=outer-k-batch-n"
    ),
    "axes b=2, h=3, i=5, j=4, k=6; y[b,h,i,j] = sum[k](A[b,h,i,k] * B[b,h,k,j]) + mask[b,i,j]": (
        'outer=2 batch=3 m=5 n=4 k=6 epilogue="x + mask[outer,m,n]"'
    ),
    "axes h=3, j=4, k=6; y[h,j] = sum[k](A[h,k,j] * B[h,k])": "batch=3 m=4 n=1 k=6 a=col",
}


@pytest.mark.parametrize("text", BATCHES)
def test_a_batch_of_products_is_a_workload_that_computes_the_same(text) -> None:
    name, *words = shlex.split(text)
    made = operator(name, **parameters_of(words)) if name == "bmm" else program(text)
    found = workload(text)
    assert found == workload(f"matmul {BATCHES[text]}")
    inputs = found.make_inputs(3)
    generic = {o.name: as_laid_out(o, inputs[o.name].astype(np.float64)) for o in made.operands}
    expected = evaluate(made, generic)[made.outputs[0].name].ravel()
    ours = found.matmul.reference(inputs).transpose(found.outputs[0].order).ravel()
    np.testing.assert_allclose(ours, expected, 1e-12)


@pytest.mark.parametrize(
    "text",
    [
        "y[h,i,j] = sum[k](a[h,i,k] * b[k,j,h])",
        "y[h,i,j] = sum[k](a[h // 2,i,k] * b[h,k,j])",  # a last group of one
    ],
)
def test_batches_that_lie_otherwise_are_no_products_yet(text: str) -> None:
    assert "needs" in str(matmul_of(program(text, **sizes(text))))


def as_laid_out(operand, array: np.ndarray) -> np.ndarray:
    """The same memory as the array of ``operand``."""
    memory = array.ravel(order="K").reshape([operand.shape[d] for d in operand.order])
    return memory.transpose(np.argsort(operand.order))


def sizes(text: str) -> dict[str, int]:
    """The extents of the axes that a program names."""
    return {name: extent for name, extent in SIZES.items() if re.search(rf"\b{name}\b", text)}


def names(made, found) -> dict[str, str]:
    """Our operands' names to the workload's: the factor with the rows is its A."""
    rows = made.stage[made.outputs[0].name].axes[0]
    product = next(stage for stage in made.stages if stage.reducer)
    first = {read.name: rows in read.axes for read in product.body.reads}
    pairs = {name: "A" if is_first else "B" for name, is_first in first.items()}
    return pairs | {o.name: o.name for o in found.epilogue_inputs}


def test_the_named_product_is_the_workload_of_that_name() -> None:
    given = {"m": 6, "n": 5, "k": 4, "b": "col", "epilogue": "relu(x + bias[n])"}
    assert matmul_of(operator("matmul", **given)).text == str(workload("matmul", **given))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("y[i,j] = max[k](a[i,k] * b[k,j])", "reductions: max; needs one product of matrices"),
        ("y[i,j] = a[i,j]", "reductions: none; needs one product of matrices"),
        ("where k <= i; y[i,j] = sum[k](a[i,k] * b[k,j])", "no condition"),
        ("y[j,i] = sum[k](a[i,k,j] * b[k])", "needs rows, columns or depth to be contiguous"),
        ("y[i,j] = sum[k](a[i,k] * b[k,j] * 2)", "needs two entries of matrices"),
        (
            "y[i,j] = sum[k](a[i,k] * b[k,j,i])",
            "needs rows, columns or depth to be contiguous",
        ),
        ("a: float32[9,k]; y[i,j] = sum[k](a[i,k] * b[k,j])", "needs a whole dense array"),
        ("y[i,j] = sum[k](a[i+1,k] * b[k,j])", "needs a whole dense array"),
        ("a: float16; y[i,j] = sum[k](a[i,k] * b[k,j])", "multiplies float16 by float32"),
        ("y[i,j] = sum[k](a[i,k] * b[k,j]) + x[i]", "another name than x, A, B, C"),
        ("y[i,j] = sum[k](a[i,k] * b[k,j]) + i", "the value of the axis i in a map"),
        (
            "a: int8; b: int8; y[i,j] = sum[k](a[i,k] * b[k,j]) // 2",
            "'x // 2' is not part of an epilogue",
        ),
        ("z[i,j] = sum[k](a[i,k] * b[k,j]); y[i,j] = z[i,0]", "needs each sum where it is"),
    ],
)
def test_why_a_program_is_no_product(text: str, reason: str) -> None:
    made = program(text, **sizes(text))
    found = matmul_of(made)
    assert isinstance(found, str)
    assert reason.replace(".", "") in found.replace("[", "").replace("]", "").replace(".", "")
    assert product_of(workload_of(made)) == found


def test_templates_say_themselves_what_they_refuse() -> None:
    target = detect_target("cpu", 1)
    wide = reasons(operator("matmul", m=512, n=64, k=64), target)
    assert wide["contraction"] is None
    assert "rows" in wide["thin_stream"]
    assert wide["loops"] == "another template serves it"
    whole = reasons(operator("matmul", m=64, n=64, k=64, dtype="int8"), target)
    assert [name for name, reason in whole.items() if reason is None] == ["loops"]


def reasons(made: Program, target: Target) -> dict[str, str | None]:
    return {template.name: reason for template, reason in served(made, target)}


def test_products_that_programs_spell_are_workloads_by_their_text() -> None:
    text = "y[t,o] = relu(sum[c](x[t,c] * w[o,c]) + bias[o])"
    same = workload("matmul", m=6, n=5, k=4, b="col", epilogue="relu(x + bias[n])")
    assert workload(text, t=6, o=5, c=4) == same
    assert as_workload(f"axes t=6, o=5, c=4; {text}") == same
    text = "z[i,j] = sum[k](a[i,k] * b[k,j]); y[i,j] = select(z[i,j] > 0, log(z[i,j]), s[j])"
    same = workload("matmul", m=3, n=5, k=4, epilogue="select(x > 0, log(x), s[n])")
    assert workload(text, i=3, j=5, k=4) == same


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("bmm batch=4 m=8 n=8", "bmm needs batch, m, n, k; missing: k"),
        ("spftmax r=4", "unknown operator 'spftmax'; did you mean softmax"),
    ],
)
def test_what_is_no_operator_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InputError, match=re.escape(reason)):
        workload(text)


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ("x: float32[i, k](leading=9)", "lda=9"),
        ("x: float32[i, k](order=(1, 0), leading=9)", "a=col lda=9"),
        ("w: float32[k, j](leading=40)", "ldb=40"),
        ("y: float32[i, j](leading=64)", "ldc=64"),
        ("x: float32[i, k](leading=4)", "a=row b=row"),
    ],
)
def test_slices_have_leading_dimensions(declared, words):
    text = f"axes i=6, j=5, k=4\n{declared}\ny[i, j] = sum[k](x[i, k] * w[k, j])"
    made = as_workload(program(text))
    assert made == workload(f"matmul m=6 n=5 k=4 {words}")
    assert all(word in made.key for word in words.split())


def test_rows_of_a_slice_that_lie_evenly_are_one_axis():
    text = "axes b=3, i=6, j=5, k=4\nx: float32[b, i, k](leading=12)\n"
    made = as_workload(program(text + "y[b, i, j] = sum[k](x[b, i, k] * w[k, j])"))
    assert made == workload("matmul m=18 n=5 k=4 lda=12")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("lda=3", "lda=3; allowed: 4 to 16777216"),
        ("ldc=4", "ldc=4; allowed: 5 to"),
        ("b=packed ldb=64", "ldb=64 with b='packed'"),
    ],
)
def test_leading_dimensions_that_cannot_be(words, complaint):
    with pytest.raises(InputError, match=complaint):
        workload(f"matmul m=6 n=5 k=4 {words}")
