"""Verification of a workload's kernel on the emulator."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels import written
from tilewright.measure.cuda.emulator import Interleaving, verify
from tilewright.measure.records.measurement import ErrorKind
from tilewright.spaces.cuda.abi import parameters
from tilewright.spaces.kernel import Kernel, Launch, arguments
from tilewright.spaces.operators import workload

WORK = workload("matmul", m=5, n=37, k=11, epilogue="relu(x + bias[n])", b="col")

BODY = """
  const int m = blockIdx.x;
  for (int n = threadIdx.x; n < 37; n += 32) {
    float sum = 0;
    for (int k = 0; k < 11; k++)
      sum += tw::load_global(A + m * 11 + k) * tw::load_global(B + k * B_K + n * B_N);
    sum += tw::load_global(BIAS + n);
    tw::store_global(C + m * 37 + n, sum < 0 ? 0 : sum);
  }"""


def made(body: str = BODY, grid: int = 5, threads: int = 32, cluster: int = 1) -> Kernel:
    a, b, bias, c = WORK.operands
    for name, value in {
        "A +": f"{a.name} +",
        "B +": f"{b.name} +",
        "B_K": b.stride("k"),
        "B_N": b.stride("n"),
        "BIAS": bias.name,
        "C +": f"{c.name} +",
    }.items():
        body = body.replace(name, str(value))
    given = parameters(arguments(WORK.inputs, WORK.outputs))
    source = f'extern "C" __global__ void naive({given}) {{{body}}}'
    launch = Launch((grid, 1, 1), (threads, 1, 1), (cluster, 1, 1))
    return written("cuda", "naive", source, WORK.operands, launch)


def test_a_right_kernel_agrees_with_the_reference(emulator):
    result = verify(emulator, WORK, made(), seed=3)
    assert result.error_kind is None, result.error_text
    reference = WORK.matmul.reference(WORK.make_inputs(3))
    np.testing.assert_allclose(result.output, reference, rtol=1e-5, atol=1e-5)


def test_a_wrong_kernel_is_told_where_and_in_which_order(emulator):
    result = verify(emulator, WORK, made(BODY.replace("k < 11", "k < 10")))
    assert result.error_kind is ErrorKind.WRONG
    assert "elements of C are wrong; at (" in result.error_text
    assert result.error_text.endswith("(eager)")


def test_what_is_left_unwritten_is_wrong(emulator):
    result = verify(emulator, WORK, made(grid=4))
    assert result.error_kind is ErrorKind.WRONG
    assert "37 of 185 elements of C are wrong; at (4, 0): nan" in result.error_text


def test_a_fault_keeps_its_kind(emulator):
    kernel = made(grid=6)
    result = verify(emulator, WORK, kernel, (Interleaving("random", 9),))
    assert result.error_kind is ErrorKind.OUT_OF_BOUNDS
    assert result.error_text.endswith("(random 9)")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"threads": 48}, "48 threads"),
        ({"threads": 2048}, "2048 threads"),
        ({"cluster": 2}, "not made of clusters"),
        ({"cluster": 32, "grid": 32}, "a cluster of 32"),
    ],
)
def test_what_cannot_be_launched_is_a_device_error(emulator, options, words):
    result = verify(emulator, WORK, made(**options))
    assert result.error_kind is ErrorKind.DEVICE
    assert words in result.error_text


def test_a_kernel_without_launch_dimensions_is_a_mistake_of_the_caller(emulator):
    with pytest.raises(ValueError, match="launch"):
        verify(emulator, WORK, written("cuda", "none", "", WORK.operands))
