"""Functions of programs that are products of matrices take arrays as these programs have them."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
import torch

from tests.measure.cuda.stub import build_stub, run_with_stub
from tests.scheduler.functions.test_cuda_function import Interface, needs_stub
from tilewright.scheduler.best import best
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.named import operator
from tilewright.spaces.operators import parameters_of, workload

SIZES = {"b": 2, "s": 3, "i": 5, "j": 5, "k": 5}
TEXTS = {
    "the second factor has the rows": "y[i,j] = sum[k](q[k,j] * w[i,k])",
    "the second factor has the rows of a batch": "y[b,i,j] = sum[k](q[b,k,j] * w[b,i,k])",
    "the second factor is transposed": "y[i,j] = sum[k](q[i,k] * w[j,k])",
    "the rows are two axes": "y[b,s,j] = relu(sum[k](q[b,s,k] * w[j,k]) + bias[j] * v[b,s])",
    "names of matmul": "y[i,j] = sum[k](B[k,j] * A[i,k])",
    "names of matmul, exchanged": "A[i,j] = sum[k](C[i,k] * B[k,j])",
    "one array is both factors": "y[i,j] = sum[k](q[i,k] * q[j,k])",
    "a factor is added": "y[i,j] = sum[k](q[k,j] * w[i,k]) + q[i,j]",
    "a vector": "y[i] = sum[k](v[k] * q[i,k])",
    "a number": "y = sum[k](v[k] * u[k])",
}


def made(text):
    words = re.findall(r"\w+", text)
    return program(text, **{axis: size for axis, size in SIZES.items() if axis in words})


def drawn(written, seed=0):
    generator = np.random.default_rng(seed)
    return {o.name: generator.random(o.shape, np.float32) for o in written.operands}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("lift", [np.asarray, torch.from_numpy])
def test_arrays_come_as_the_program_has_them(text, lift):
    written = made(text)
    given = drawn(written)
    arrays = {name: lift(array) for name, array in given.items()}
    (output,) = written.outputs
    exact = evaluate(written, given)[output.name]
    for asked in (written, workload(text, **written.extent)):
        call = best(asked, database=None)
        found = call(*arrays.values())
        assert tuple(found.shape) == output.shape
        np.testing.assert_allclose(found, exact, rtol=1e-5)
        np.testing.assert_array_equal(call(**arrays), found)
        out = lift(np.zeros(output.shape, np.float32))
        assert pickle.loads(pickle.dumps(call))(*arrays.values(), out=out) is out
        np.testing.assert_array_equal(out, found)


NAMED = {
    "conv2d n=2 c=8 h=6 w=5 o=4 r=1 s=1 layout=NHWC": ["image", "filter"],
    "conv2d n=2 c=8 h=6 w=5 o=4 r=1 s=1 layout=NCHW epilogue=relu(x+bias[o])": None,
    "bmm batch=4 m=5 n=5 k=5 shared=2": ["A", "B"],
}


@pytest.mark.parametrize("text", NAMED)
def test_operators_that_are_products_take_arrays_as_their_programs_have_them(text):
    """A convolution takes images whatever its window is."""
    name, *words = text.split()
    written = operator(name, **parameters_of(words))
    given = drawn(written)
    assert list(given) == (NAMED[text] or list(given))
    (output,) = written.outputs
    exact = evaluate(written, given)[output.name]
    call = best(workload(text), database=None)
    found = call(*given.values())
    assert found.shape == output.shape
    np.testing.assert_allclose(found, exact, rtol=1e-5)
    np.testing.assert_array_equal(call(**given), found)


def test_what_does_not_fit_is_called_as_the_program_has_it():
    call = best(made(TEXTS["the second factor has the rows"]), database=None)
    q, w = drawn(made(TEXTS["the second factor has the rows"])).values()
    for arrays, named, says in (
        ((q, w[:4]), {}, r"w is float32 of shape \(4, 5\); allowed: float32 of shape \(5, 5\)"),
        ((q,), {}, "the kernel takes q, w, each once; got 1 by position"),
        ((), {"A": w, "B": q}, "the kernel takes q, w, each once; got 0 by position, A, B"),
        ((q, w), {"out": w}, "out shares memory with w"),
    ):
        with pytest.raises(InputError, match=says):
            call(*arrays, **named)


def test_an_operand_may_have_any_name():
    call = best(workload("y[i] = self[i] * 2", i=3), database=None)
    given = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(call(self=given), 2 * given)


def test_an_operand_that_is_called_out_comes_by_position():
    call = best(workload("y[i] = out[i] * 2", i=3), database=None)
    given = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(call(given), 2 * given)
    with pytest.raises(InputError, match="got 0 by position; by name, out is where the result"):
        call(out=given)


ON_GPU = """
import json, sys
from tilewright.scheduler.best import best
from tilewright.spaces.named import operator
from tilewright.spaces.operators import parameters_of, workload
from tests.scheduler.functions.test_cuda_function import Interface

work = workload("y[i,j] = sum[k](q[k,j] * self[i,k])", i=64, j=128, k=64, dtype="float16")
call = best(work, "cuda:sm_80", None)
q, w = (Interface(shape, address=place << 20) for place, shape in ((1, (64, 128)), (2, (64, 64))))
out = Interface((64, 128), address=1 << 30)
for given, named in (((q, w), {}), ((), {"q": q, "self": w})):
    assert call(*given, **named, out=out, stream=64) is out
print(json.dumps(call._kernel.call.workspace_bytes))
"""


@needs_stub
def test_a_gpu_gets_matrices_in_the_order_of_the_kernel(tmp_path):
    build_stub(tmp_path)
    workspace, log = run_with_stub(tmp_path, ON_GPU, STUB_PARAMETERS="3")
    assert workspace == 0
    launches = [line.split()[-3:] for line in log if line.startswith("launch")]
    assert launches == [["0x200000", "0x100000", "0x40000000"]] * 2


def test_arrays_on_a_gpu_are_called_as_the_program_has_them():
    text = TEXTS["the second factor has the rows"]
    call = best(workload(text, i=64, j=64, k=64, dtype="float16"), "cuda:sm_80", None)
    right, wrong = Interface((64, 64), address=4096), Interface((64, 32), address=8192)
    with pytest.raises(InputError, match="w is <f2 of shape"):
        call(right, wrong, out=Interface((64, 64), address=1 << 20))
