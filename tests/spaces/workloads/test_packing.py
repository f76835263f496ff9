"""The packed order: where each element lies, and that nothing is lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.spaces.dtypes import dtype
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.operators import as_workload, workload, workload_from_json
from tilewright.spaces.workloads.calling import calling_of
from tilewright.spaces.workloads.packing import pack, unpack

sizes = st.integers(1, 40)


def matrix(columns: int, depth: int, kind: str) -> np.ndarray:
    values = np.arange(1, columns * depth + 1).reshape(columns, depth) % 251
    return values.astype(dtype(kind).numpy)


@given(columns=sizes, depth=sizes)
def test_each_element_of_float32_lies_where_the_order_says(columns, depth):
    weight = matrix(columns, depth, "float32")
    packed = pack(weight)
    assert packed.shape == (-(-columns // 16), depth, 16)
    for i in range(columns):
        assert (packed[i // 16, :, i % 16] == weight[i]).all()
    assert packed.sum() == weight.sum()  # zeros fill the last panel


@given(columns=sizes, depth=sizes)
def test_pairs_of_bfloat16_are_neighbours_along_the_depth(columns, depth):
    weight = matrix(columns, depth, "bfloat16")
    packed = pack(weight)
    assert packed.shape == (-(-columns // 16), -(-depth // 2), 16, 2)
    for j in range(depth):
        column = packed[:, j // 2, :, j % 2].reshape(-1)
        assert (column[:columns] == weight[:, j]).all()


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
@given(columns=sizes, depth=sizes)
def test_unpack_gives_what_was_packed(kind, columns, depth):
    weight = matrix(columns, depth, kind)
    assert (unpack(pack(weight), columns, depth) == weight).all()
    assert (unpack(pack(np.asfortranarray(weight)), columns, depth) == weight).all()


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_tensors_are_packed_as_arrays_are(kind):
    torch = pytest.importorskip("torch")
    weight = torch.arange(35 * 9.0).reshape(35, 9).to(getattr(torch, kind))
    layer = torch.nn.Parameter(weight)
    packed = pack(layer)
    assert packed.is_contiguous()
    assert not packed.requires_grad
    expected = pack(weight.float().numpy().astype(dtype(kind).numpy))
    assert (packed.float().numpy() == expected.astype("f4")).all()
    assert torch.equal(unpack(packed, 35, 9), weight)
    assert torch.equal(pack(weight.T.contiguous().T), packed)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([[1.0]], "cannot pack a list; allowed: a NumPy array or a torch tensor"),
        (np.zeros((4, 4)), "no packed order of float64; allowed: float32, bfloat16"),
        (np.zeros(4, "f4"), "no packed order of the shape (4,); allowed: (columns, depth)"),
        (np.zeros((0, 4), "f4"), "no packed order of the shape (0, 4)"),
    ],
)
def test_what_cannot_be_packed_is_refused_in_one_line(given, words):
    with pytest.raises(InputError) as error:
        pack(given)
    assert words in str(error.value)


def test_unpack_refuses_an_array_of_another_matrix():
    with pytest.raises(InputError, match=r"shape \(3, 9, 16\); allowed: \(2, 9, 16\)"):
        unpack(pack(np.zeros((35, 9), "f4")), 32, 9)


# -- workloads ---------------------------------------------------------------------------------

TEXT = "axes i=5, j=35, l=9\nw: float32[j, l](packed)\ny[i, j] = relu(sum[l](x[i, l] * w[j, l]))"


def test_a_packed_product_is_a_workload_of_its_own():
    packed, plain = (workload(f"matmul m=5 n=35 k=9 b={b}") for b in ("packed", "col"))
    assert packed.key != plain.key
    assert "b=packed" in packed.key
    assert workload(str(packed)) == packed
    assert workload_from_json(packed.to_json()) == packed
    assert [array.shape for array in packed.inputs] == [(5, 9), (3, 9, 16)]
    assert packed.inputs[1].bytes == 3 * 9 * 16 * 4


def test_a_program_with_packed_weights_is_that_workload():
    made = as_workload(program(TEXT))
    assert made.key == workload("matmul m=5 n=35 k=9 b=packed epilogue=relu(x)").key
    assert [(a.name, a.shape) for a in calling_of(made).inputs] == [
        ("w", (3, 9, 16)),
        ("x", (5, 9)),
    ]
    assert "w: float32[35, 9](packed)" in program(TEXT).text
    assert program(program(TEXT).text) == program(TEXT)


@pytest.mark.parametrize(
    "text",
    [
        "axes j=35, l=9\nw: float32[j, l](packed)\ny[j] = sum[l](x[l] * w[j, l])",
        "axes j=35, l=9\nw: float32[j, l](packed)\ny[j] = sum[l](w[j, l] * x[l])",
    ],
)
def test_one_row_times_packed_weights(text):
    assert as_workload(program(text)).key == workload("matmul m=1 n=35 k=9 b=packed").key


def test_programs_are_evaluated_on_packed_operands():
    made = program(TEXT)
    generator = np.random.default_rng(0)
    x, w = (generator.standard_normal(shape).astype("f4") for shape in ((5, 9), (35, 9)))
    (found,) = evaluate(made, {"x": x, "w": pack(w)}).values()
    assert np.allclose(found, np.maximum(x.astype("f8") @ w.T.astype("f8"), 0))


def test_the_reference_reads_packed_inputs():
    made = workload("matmul m=5 n=35 k=9 b=packed")
    inputs = made.make_inputs(3)
    plain = workload("matmul m=5 n=35 k=9 b=col")
    same = {"A": inputs["A"], "B": np.asfortranarray(unpack(inputs["B"], 35, 9).T)}
    assert np.allclose(made.matmul.reference(inputs), plain.matmul.reference(same))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("matmul m=4 n=4 k=4 a=packed", "layout a='packed' is unknown; allowed: row, col"),
        ("matmul m=4 n=4 k=4 b=packed c=col", "c='col' with b='packed'; allowed: row"),
        ("matmul m=4 n=4 k=4 b=packed batch=2", "b='packed' with batch=2; allowed: one right"),
        ("matmul m=4 n=4 k=4 b=packed dtype=float16", "no packed order of float16"),
        ("matmul m=4 n=4 k=4 b=panel", "layout b='panel' is unknown; allowed: row, col, packed"),
    ],
)
def test_what_no_product_has_packed(text, words):
    with pytest.raises(InputError) as error:
        workload(text)
    assert words in str(error.value)
    assert len(str(error.value)) <= 200


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("w: float32[l, j](packed)\ny[i, j] = sum[l](x[i, l] * w[l, j])", "[columns, depth]"),
        ("w: float32[j, l](packed)\ny[i, j] = sum[l](w[j, l])", "w is packed"),
        ("w: int32[j, l](packed)\ny[i, j] = sum[l](x[i, l] * w[j, l])", "no packed order of int32"),
        ("y: float32[i, j](packed)\ny[i, j] = sum[l](x[i, l] * w[l, j])", "only operands are"),
        (
            "w: float32[j, l](packed, leading=64)\ny[i, j] = sum[l](x[i, l] * w[j, l])",
            "no other order",
        ),
        (
            "w: float32[j, l](packed)\nx: float32[i, l](packed)\n"
            "y[i, j] = sum[l](x[i, l] * w[j, l])",
            "x and w are packed; allowed: one",
        ),
    ],
)
def test_what_no_program_has_packed(lines, words):
    with pytest.raises(InputError) as error:
        as_workload(program(f"axes i=5, j=35, l=9\n{lines}"))
    assert words in str(error.value)
