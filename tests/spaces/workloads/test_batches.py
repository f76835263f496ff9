"""Batches of products as workloads: identity, meaning, and where each product has its part."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.spaces.c_program import run_c
from tilewright.measure.drawing.product_sensitivity import sensitivity
from tilewright.measure.drawing.products import ProductInputs
from tilewright.spaces.algebra.index import index
from tilewright.spaces.errors import InputError
from tilewright.spaces.numerics.allowance import agrees
from tilewright.spaces.operators import workload, workload_from_json
from tilewright.spaces.workloads.product import orient

BATCH = {"batch": 3, "m": 5, "n": 4, "k": 6}
GROUPS = {"batch": 2, "heads": 3, "m": 5, "n": 4, "k": 6, "a": "col"}
EPILOGUE = "relu(x + bias[n]) * s[batch] + r[batch,m,n]"


def test_one_product_is_no_batch() -> None:
    plain = workload("matmul", m=5, n=4, k=6)
    assert workload("matmul m=5 n=4 k=6 batch=1 heads=1") == plain
    assert "batch" not in plain.key
    assert orient(plain.matmul).batches == 1


@pytest.mark.parametrize("sizes", [BATCH, GROUPS])
def test_keys_and_json_say_it_all(sizes) -> None:
    made = workload("matmul", **sizes, epilogue=EPILOGUE)
    assert workload(str(made)) == made
    assert workload_from_json(made.to_json()) == made
    assert made.key != workload("matmul", **{**sizes, "batch": 5}, epilogue=EPILOGUE).key
    assert made.flops == 2 * 5 * 4 * 6 * sizes["batch"] * sizes.get("heads", 1)


def test_an_order_has_one_name() -> None:
    made = workload(
        "matmul", **{**GROUPS, "a": "batch-heads-m-k"}, b="batch-n-k", c="m-batch-heads-n"
    )
    assert "a=row b=col c=m-batch-heads-n" in made.key
    assert made.outputs[0].strides == (3 * 4, 4, 2 * 3 * 4, 1)


@pytest.mark.parametrize(
    "orders", [{"a": "m-batch-heads-k"}, {}, {"b": "col"}, {"a": "row", "c": "col"}]
)
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_each_product_is_that_of_its_matrices(orders, dtype) -> None:
    made = workload("matmul", **{**GROUPS, **orders}, dtype=dtype)
    inputs = made.make_inputs(1)
    a, b = inputs["A"].astype(np.float64), inputs["B"].astype(np.float64)
    expected = np.array([[a[g, h] @ b[g] for h in range(3)] for g in range(2)])
    np.testing.assert_allclose(made.matmul.reference(inputs), expected, 1e-12)
    np.testing.assert_allclose(made.matmul.contract(inputs, small=True), expected, 1e-12)


@pytest.mark.parametrize("sizes", [BATCH, GROUPS])
@pytest.mark.parametrize("order", ["row", "col"])
def test_a_product_finds_its_part_of_each_array(sizes, order) -> None:
    made = workload("matmul", **sizes, c=order, epilogue="x + v[batch,n] + s[]")
    product, inputs = orient(made.matmul), made.make_inputs(2)
    assert product.batches == sizes["batch"] * sizes.get("heads", 1)
    for operand in made.inputs:
        array = inputs[operand.name]
        memory = array.transpose(operand.order).ravel()
        for number in range(product.batches):
            place = dict(zip(product.batch, np.unravel_index(number, extents(made)), strict=True))
            first = array[tuple(place.get(axis, 0) for axis in operand.axes)]
            assert memory[product.start(operand, index(number)).value] == first
        named = product.start(operand, index("p", product.batches)).text
        assert printed(f"long p = 0; p < {product.batches}; p++", named) == [
            product.start(operand, index(number)).value for number in range(product.batches)
        ]


def printed(loop: str, text: str) -> list[int]:
    """The values that the C of an integer has in a loop."""
    body = f'for ({loop}) printf("%ld\\n", (long)({text}));'
    return list(map(int, run_c(f"#include <stdio.h>\nint main(void) {{ {body} }}")))


def extents(made) -> tuple[int, ...]:
    return tuple(made.extents[axis] for axis in orient(made.matmul).batch)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("matmul m=4 n=4 k=4 batch=0", "batch=0 is out of range; allowed: 1 to"),
        ("matmul m=4 n=4 k=4 heads=two", "heads='two' is not a whole number"),
        ('matmul m=4 n=4 k=4 epilogue="x + s[batch]"', "index 'batch' is no axis; allowed: m, n"),
        ("matmul m=4 n=4 k=4 heads=3", "ask for m=12 without heads"),
        ("matmul m=1 n=4 k=4 batch=2 heads=3 a=col", "ask for m=3 without heads"),
        ('matmul m=4 n=4 k=4 heads=3 epilogue="x + r[heads,m]"', "ask for m=12 without heads"),
        ("matmul m=4 n=4 k=4 a=k", "layout a='k' is unknown; allowed: row, col"),
        ("matmul m=4 n=4 k=4 batch=2 b=k-n-batch", "batch, k, n joined by '-', k or n last"),
        ("matmul m=4 n=4 k=4 batches=2", "accumulator, batch, heads, outer"),
        ("matmul m=4 n=4 k=4 outer=2", "ask for batch=2 without outer"),
        ("matmul m=4 n=4 k=4 outer=2 batch=3", "ask for batch=6 without outer"),
        (
            "matmul m=4 n=4 k=4 outer=2 batch=3 c=batch-outer-m-n",
            "outer=2 lies within batch=3 in C; ask for them the other way round",
        ),
        ("matmul m=4 n=4 k=4 outer=0 batch=3", "outer=0 is out of range"),
    ],
)
def test_what_is_refused(text, reason) -> None:
    with pytest.raises(InputError, match=re.escape(reason)):
        workload(text)


def shifted(made, inputs, name):
    """The result where each product takes the neighbour's ``name``."""
    return made.matmul.reference({**inputs, name: np.roll(inputs[name], 1, 0)})


@pytest.mark.parametrize("epilogue", ["", EPILOGUE, "relu(x - 1000)"])
def test_draws_tell_the_neighbours_matrices(epilogue) -> None:
    made = workload("matmul", **{**GROUPS, "m": 32, "n": 32}, epilogue=epilogue)
    draw = ProductInputs(made, 0).draw(1)
    low, high = draw.allowed()["C"]
    assert agrees(made.matmul.reference(draw.inputs), low, high).all()
    for name in ("A", "B", *(o.name for o in made.matmul.epilogue_inputs if "batch" in o.axes)):
        assert not agrees(shifted(made, draw.inputs, name), low, high).all(), name
    assert (sensitivity(made.matmul).scale == 1.0) == ("1000" not in epilogue)
