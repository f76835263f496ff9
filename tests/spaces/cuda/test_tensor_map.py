from __future__ import annotations

import pytest

from tilewright.spaces.cuda.abi import parameters
from tilewright.spaces.cuda.tensor_map import TensorMapSpec
from tilewright.spaces.kernel import arguments
from tilewright.spaces.operators import workload


def test_a_map_knows_its_rank_and_its_elements():
    spec = TensorMapSpec("a", "bfloat16", (1000, 77), (2000,), (64, 128), 128)
    assert (spec.rank, spec.element_bytes) == (2, 2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dims": (), "strides": (), "box": ()}, "1 to 5 dimensions"),
        ({"strides": ()}, "one stride"),
        ({"strides": (2008,)}, "multiples of 16"),
        ({"box": (64,)}, "one box extent"),
        ({"box": (64, 257)}, "1 to 256"),
        ({"box": (4, 8)}, "a multiple of 16 bytes"),
        ({"box": (128, 8)}, "no longer than the swizzle"),
        ({"swizzle": 16}, "a swizzle of"),
        ({"dims": (0, 77)}, "dimensions of 1"),
    ],
)
def test_what_the_driver_would_refuse_is_refused(change, words):
    good = {
        "operand": "a",
        "dtype": "float16",
        "dims": (1000, 77),
        "strides": (2000,),
        "box": (64, 8),
        "swizzle": 128,
    }
    TensorMapSpec(**good)
    with pytest.raises(ValueError, match=words):
        TensorMapSpec(**{**good, **change})


def test_parameters_come_in_the_documented_order():
    work = workload("matmul", m=8, n=8, k=8, dtype="float16", epilogue="x + bias[n]")
    given = arguments(work.inputs, work.outputs)
    text = parameters(given, workspace=True, maps=("map_a", "map_b"))
    names = [word.split()[-1].lstrip("*") for word in text.split(",")]
    assert names == [*(o.name for o in work.operands), "workspace", "map_a", "map_b"]
    assert text.startswith("const f16 *__restrict__")
