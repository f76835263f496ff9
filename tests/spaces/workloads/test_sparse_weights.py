"""Weights packed as their elements that are not zero: what is kept, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from tilewright.spaces.errors import InputError
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.workloads.sparse_weights import pack_sparse


def pruned(rows: int = 7, depth: int = 12, kept: float = 0.3, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    weight = generator.standard_normal((rows, depth)).astype(np.float32)
    weight[generator.random((rows, depth)) > kept] = 0
    weight[[0, rows - 1]] = 0
    return weight


def dense(weight) -> np.ndarray:
    values, columns, pointers = (
        np.asarray(part) for part in (weight.values, weight.columns, weight.pointers)
    )
    return sparse.csr_matrix((values, columns.astype(np.int32), pointers), weight.shape).toarray()


SOURCES = {
    "an array": lambda w: w,
    "columns first": np.asfortranarray,
    "a tensor": torch.from_numpy,
    "a parameter": lambda w: torch.nn.Parameter(torch.from_numpy(w)),
    "CSR of SciPy": sparse.csr_matrix,
    "a sparse array of SciPy": sparse.csr_array,
    "COO of SciPy": lambda w: sparse.csc_matrix(w).tocoo(),
    "CSC of SciPy": sparse.csc_matrix,
    "CSR of torch": lambda w: torch.sparse_csr_tensor(
        *map(torch.from_numpy, (lambda m: (m.indptr, m.indices, m.data))(sparse.csr_matrix(w))),
        w.shape,
        check_invariants=True,
    ),
}


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
@pytest.mark.parametrize("source", SOURCES)
def test_what_is_packed_are_the_elements_that_are_not_zero(source):
    given = pruned()
    weight = pack_sparse(SOURCES[source](given))
    np.testing.assert_array_equal(dense(weight), given)
    assert weight.entries == np.count_nonzero(given)
    assert str(weight.columns.dtype).endswith("uint16")
    assert torch.is_tensor(weight.values) == ("tensor" in source or "torch" in source
                                              or source == "a parameter")  # fmt: skip


def test_a_copy_is_packed():
    matrix = sparse.csr_matrix(pruned())
    weight = pack_sparse(matrix)
    before = dense(weight)
    matrix.data[:] = 9
    np.testing.assert_array_equal(dense(weight), before)


@pytest.mark.parametrize(("depth", "kind"), [(65536, "uint16"), (65537, "int32")])
def test_columns_are_as_narrow_as_they_can_be(depth, kind):
    given = np.zeros((2, depth), np.float32)
    given[[0, 1], [depth - 1, 3]] = 5, 6
    weight = pack_sparse(given)
    assert weight.columns.dtype == kind
    assert weight.columns.tolist() == [depth - 1, 3]


@pytest.mark.parametrize("epilogue", ["x", "relu(x * x + bias[n]) + max(x, y2[m, n])"])
def test_the_product_is_that_of_the_whole_matrix(epilogue):
    given, generator = pruned(), np.random.default_rng(1)
    weight = pack_sparse(given)
    made = weight.product(5, epilogue)
    more = {"a": (5, 12), "bias": (7,), "y2": (5, 7)}
    inputs = {name: generator.random(shape).astype(np.float32) for name, shape in more.items()}
    inputs = {o.name: {**weight.arrays, **inputs}[o.name] for o in made.operands}
    x = inputs["a"] @ given.T
    wanted = x if epilogue == "x" else np.maximum(x * x + inputs["bias"], 0)
    wanted = wanted if epilogue == "x" else wanted + np.maximum(x, inputs["y2"])
    np.testing.assert_allclose(evaluate(made, inputs)["y"], wanted, 1e-5, 1e-5)


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16, torch.float16])
def test_values_keep_their_dtype(kind):
    weight = pack_sparse(torch.from_numpy(pruned()).to(kind))
    assert weight.values.dtype == kind
    assert {o.dtype for o in weight.product(3).operands[2:]} == {str(kind).removeprefix("torch.")}


def csr(pointers=(0, 2, 3), columns=(0, 3, 1), values=(1.0, 2.0, 3.0), shape=(2, 4)):
    matrix = sparse.csr_matrix(shape, dtype=np.float32)
    matrix.indptr, matrix.indices = np.array(pointers), np.array(columns)
    matrix.data = np.array(values, np.float32)
    return matrix


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda: csr((0, 3, 2)), "pointers are not sorted: they fall after entry 1"),
        (lambda: csr((0, 2, 4)), "pointers ends at 4; allowed: 3, the number of entries"),
        (lambda: csr((1, 2, 3)), "pointers begin at 1; allowed: 0"),
        (lambda: csr((0, 3)), "2 pointers; allowed: 3, of 2 rows and the end"),
        (lambda: csr(columns=(0, 4, 1)), "columns hold the index 4; allowed: 0 to 3"),
        (lambda: csr(columns=(0, -1, 1)), "columns hold the index -1; allowed: 0 to 3"),
        (lambda: csr(columns=(3, 0, 1)), "columns of row 0 are not sorted: they fall after entry"),
        (lambda: csr((0, 1, 3), (0, 3, 1)), "columns of row 1 are not sorted: .* after entry 1;"),
        (lambda: csr(values=(1.0, 2.0)), r"values have the shape \(2,\); allowed: \(3,\)"),
        (lambda: np.zeros((3, 4), np.float32), "a weight of 0 elements that are not 0"),
        (lambda: np.ones((3, 4), np.int32), "a weight of int32; allowed: float32, float64"),
        (lambda: np.ones(4, np.float32), r"a weight of shape \(4,\); allowed: \(columns, depth\)"),
        (lambda: [[1.0, 0.0]], "cannot pack a list; allowed: a NumPy array, a torch tensor"),
        (lambda: torch.eye(3).to_sparse(), "cannot pack a tensor in sparse_coo; allowed: a dense"),
    ],
)  # fmt: skip
def test_bad_weights_are_refused_in_one_line(given, words):
    with pytest.raises(InputError, match=words) as raised:
        pack_sparse(given())
    assert "\n" not in str(raised.value)


def test_a_row_may_begin_with_a_lower_column_than_the_last_ended_with():
    weight = pack_sparse(csr((0, 2, 3), (0, 3, 1)))
    assert weight.columns.tolist() == [0, 3, 1]
