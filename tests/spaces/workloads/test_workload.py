import json
import os
import subprocess
import sys
from itertools import product

import numpy as np
import pytest

from tilewright.spaces.dtypes import DTYPES
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload, workload_from_json
from tilewright.spaces.workloads.words import MAX_EXTENT

CASES = {
    "matmul m=2 n=3 k=4 dtype=float32 out=float32 a=row b=row c=row": {"m": 2, "n": 3, "k": 4},
    'matmul m=2 n=3 k=4 dtype=bfloat16 out=float32 a=col b=row c=col epilogue="{}"': {
        "m": "2",
        "n": "3",
        "k": "4",
        "dtype": "bfloat16",
        "out": "float32",
        "a": "col",
        "c": "col",
        "epilogue": "  gelu( x+bias[n] )*scale[ ]+residual[m, n] ",
    },
}
FUSED = list(CASES.values())[1]


def test_keys_are_canonical():
    plain, fused = CASES
    assert workload("matmul", **CASES[plain]).key == plain
    made = workload("matmul", **FUSED)
    assert str(made) == fused.format(made.matmul.epilogue.asked)
    assert made.key == fused.format("a75749fc710dfe34").replace('"', "")
    assert workload(str(made)) == made
    spaced = FUSED | {"epilogue": "gelu(x + bias[n]) * scale[] + residual[m,n]"}
    assert workload("matmul", **spaced) == made
    assert hash(workload("matmul", **spaced)) == hash(made)
    assert made != workload("matmul", **FUSED | {"m": 3})
    reordered = dict(reversed(FUSED.items()))
    assert workload("matmul", **reordered).key == made.key


def test_keys_are_the_same_in_every_process():
    program = (
        "import json, sys\n"
        "from tilewright.spaces.operators import workload\n"
        "for case in json.load(sys.stdin):\n"
        "    made = workload('matmul', **case)\n"
        "    print(made.digest, made.key)\n"
    )
    made = [workload("matmul", **case) for case in CASES.values()]
    expected = [f"{w.digest} {w.key}" for w in made]
    for seed in ("1", "2"):
        result = subprocess.run(
            [sys.executable, "-c", program],
            input=json.dumps(list(CASES.values())),
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert result.stdout.splitlines() == expected


@pytest.mark.parametrize("case", CASES.values())
def test_json_round_trip(case):
    made = workload("matmul", **case)
    text = json.dumps(made.to_json())
    again = workload_from_json(json.loads(text))
    assert again == made
    assert again.key == made.key
    assert again.operands == made.operands


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"operator": "matmul"},
        {"operator": 3, "parameters": {}},
        {"operator": "matmul", "parameters": []},
    ],
)
def test_malformed_json_is_refused(data):
    with pytest.raises(InputError, match="not a workload"):
        workload_from_json(data)


def test_work_and_traffic():
    made = workload("matmul", m=5, n=7, k=11, dtype="bfloat16", out="float32", epilogue="x + b[n]")
    assert made.flops == 2 * 5 * 7 * 11
    assert made.least_bytes == 2 * (5 * 11 + 11 * 7) + 4 * 7 + 4 * 5 * 7
    assert made.extents == {"m": 5, "n": 7, "k": 11}
    assert [o.name for o in made.operands] == ["A", "B", "b", "C"]


def test_operations_are_those_that_are_done_and_work_is_never_nothing():
    plain = workload("matmul m=5 n=3 k=7")
    total = workload("y[m] = sum[k](a[m, k])", m=5, k=7)
    copy = workload("y[m, k] = a[m, k]", m=5, k=7)
    assert (plain.flops, plain.work) == (210, 210)
    assert (total.flops, total.work) == (0, 35)
    assert (copy.flops, copy.work) == (0, 35)


def test_output_and_accumulator_types():
    assert workload("matmul", m=1, n=1, k=1, dtype="float16").outputs[0].dtype == "float16"
    assert workload("matmul", m=1, n=1, k=1, dtype="float16").accumulator == "float32"
    assert workload("matmul", m=1, n=1, k=1, dtype="int8").outputs[0].dtype == "int32"
    assert workload("matmul", m=1, n=1, k=1, dtype="float8_e5m2").outputs[0].dtype == "float32"


@pytest.mark.parametrize("name", DTYPES)
def test_inputs_are_deterministic_and_as_described(name):
    made = workload("matmul", m=6, n=5, k=7, dtype=name, a="col")
    first, again, other = made.make_inputs(1), made.make_inputs(1), made.make_inputs(2)
    for operand in made.matmul.factors:
        array = first[operand.name]
        assert array.dtype == operand.element.numpy
        assert array.shape == operand.shape
        assert tuple(s // array.itemsize for s in array.strides) == operand.strides
        assert np.array_equal(array, again[operand.name])
        assert not np.array_equal(array, other[operand.name])
        assert len(np.unique(array)) > (1 if name == "bool" else 4)
    assert first["A"].flags.f_contiguous
    assert first["B"].flags.c_contiguous


def loops(made, inputs):
    """The product by its definition, one element at a time, in float64."""
    a, b = inputs["A"], inputs["B"]
    m, n, k = made.extents.values()
    result = np.zeros((m, n))
    for i, j, p in product(range(m), range(n), range(k)):
        result[i, j] += float(a[i, p]) * float(b[p, j])
    return result


@pytest.mark.parametrize("orders", list(product(("row", "col"), repeat=3)))
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_reference_is_the_definition(orders, dtype):
    made = workload("matmul", m=3, n=4, k=5, dtype=dtype, **dict(zip("abc", orders, strict=True)))
    inputs = made.make_inputs(0)
    reference = made.matmul.reference(inputs)
    assert reference.dtype == (np.int64 if dtype == "int8" else np.float64)
    np.testing.assert_allclose(reference, loops(made, inputs), rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("orders", list(product(("row", "col"), repeat=3)))
def test_operands_say_where_elements_live(orders):
    made = workload("matmul", m=3, n=4, k=5, **dict(zip("abc", orders, strict=True)))
    for operand in made.operands:
        values = np.arange(operand.size).reshape(operand.shape)
        array = operand.array(values)
        memory = array.ravel(order="K")
        for point in np.ndindex(operand.shape):
            assert memory[operand.layout.offset(*point)] == values[point]
        for axis in "mnk":
            if axis in operand.axes:
                stride = array.strides[operand.axes.index(axis)] // array.itemsize
                assert operand.stride(axis) == stride
            else:
                assert operand.stride(axis) == 0


def test_reference_with_an_epilogue():
    made = workload(
        "matmul", m=3, n=4, k=5, epilogue="relu(x * scale[] + bias[n]) + row[m] - t[n,m] + r[m,n]"
    )
    inputs = made.make_inputs(3)
    assert {name: array.shape for name, array in inputs.items()} == {
        "A": (3, 5),
        "B": (5, 4),
        "scale": (),
        "bias": (4,),
        "row": (3,),
        "t": (4, 3),
        "r": (3, 4),
    }
    wide = {name: array.astype(np.float64) for name, array in inputs.items()}
    accumulator = loops(made, inputs)
    expected = np.maximum(accumulator * wide["scale"] + wide["bias"][None, :], 0)
    expected = expected + wide["row"][:, None] - wide["t"].T + wide["r"]
    np.testing.assert_allclose(made.matmul.reference(inputs), expected, rtol=1e-13, atol=1e-13)


SIZES = {"m": 1, "n": 1, "k": 1}


@pytest.mark.parametrize(
    ("operator", "changes", "words"),
    [
        ("matmull", {}, "unknown operator 'matmull'; did you mean matmul? known: argmax"),
        ("matmul", {"k": None}, "missing: k"),
        ("matmul", {"q": 3}, "no parameter 'q'; allowed: m, n, k, dtype"),
        ("matmul", {"m": 0}, f"m=0 is out of range; allowed: 1 to {MAX_EXTENT}"),
        ("matmul", {"n": "-4"}, "n=-4 is out of range"),
        ("matmul", {"k": 10**30}, f"k={10**30} is out of range"),
        ("matmul", {"m": "abc"}, "m='abc' is not a whole number"),
        ("matmul", {"m": 2.5}, "m=2.5 is not a whole number"),
        ("matmul", {"m": True}, "m=True is not a whole number"),
        ("matmul", {"m": "1e3"}, "m='1e3' is not a whole number"),
        ("matmul", {"m": "9" * 5000}, "is not a whole number"),
        ("matmul", {"m": [3]}, "m=[3] is not a whole number"),
        ("matmul", {"dtype": "float31"}, "unknown dtype 'float31'; did you mean float32"),
        ("matmul", {"out": "text"}, "unknown dtype 'text'"),
        ("matmul", {"a": "diagonal"}, "layout a='diagonal' is unknown; allowed: row, col"),
        ("matmul", {"epilogue": "x + A[m]"}, "epilogue operand 'A'"),
        ("matmul", {"epilogue": "x + b[k]"}, "k"),
        ("matmul", {"epilogue": "x +"}, ""),
        ("matmul", {"epilogue": "__import__('os')"}, ""),
    ],
)
def test_wrong_input_is_explained(operator, changes, words):
    parameters = {n: v for n, v in {**SIZES, **changes}.items() if v is not None}
    with pytest.raises(InputError) as error:
        workload(operator, **parameters)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
