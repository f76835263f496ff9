"""Arrays that do not fit a kernel, and wrong indices, are handed on to a closer look."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.scheduler.functions.counted_calls import (
    FLOATS,
    UNFIT,
    Kernel,
    array,
    both,
    indices,
    needs_exchange,
    transposition,
)
from tests.scheduler.functions.headers import needs_header

pytestmark = needs_header


@pytest.mark.parametrize("output", [False, True])
@pytest.mark.parametrize("what", UNFIT)
def test_what_does_not_fit_is_handed_on_as_it_came(what, output):
    """A closer look takes some of it, and says what is wrong with the rest."""
    kernel = Kernel(array("x", 6, 4), array("y", 6, 4))
    one, other = UNFIT[what], np.ones((6, 4), np.float32)
    given, out = (other, one) if output else (one, other)
    if one is None and output:
        return
    assert kernel.call(given, out=out) == "seen"
    ((arrays, named),) = kernel.seen
    assert arrays == (given,)
    assert named["out"] is out
    assert kernel.calls == []


def test_tensors_within_a_transformation_are_handed_on():
    kernel = Kernel(array("x", 6, 4), array("y", 6, 4))

    def read(tensor):
        assert kernel.call(tensor, out=torch.zeros(6, 4)) == "seen"
        return tensor.sum()

    torch.func.vmap(read)(torch.ones(2, 6, 4))
    torch.func.grad(read)(torch.ones(6, 4))


@needs_exchange
def test_parameters_are_taken_where_no_gradients_are_tracked():
    kernel = transposition()
    weight = torch.nn.Parameter(torch.zeros(6, 4))
    with torch.no_grad():
        kernel.call(weight, out=torch.zeros(4, 6))
    assert len(kernel.calls) == 1
    assert kernel.call(weight, out=torch.zeros(4, 6)) == "seen"


def test_what_is_read_only_is_read_only():
    kernel = transposition()
    x, y = FLOATS.copy(), np.zeros((4, 6), np.float32)
    x.flags.writeable = False
    kernel.call(x, out=y)
    assert len(kernel.calls) == 1
    y.flags.writeable = False
    assert kernel.call(x, out=y) == "seen"


@both
def test_an_output_that_shares_memory_is_handed_on(kind):
    kernel = Kernel(array("x", 6), array("b", 6), array("y", 6))
    memory = kind(np.zeros(24, np.float32))
    for first, shares in ((0, True), (5, True), (6, False), (7, True), (12, True), (18, False)):
        before = len(kernel.calls)
        kernel.call(memory[:6], memory[12:18], out=memory[first : first + 6])
        assert (len(kernel.calls) == before) is shares
    kernel.call(memory[:6], memory[:6], out=memory[6:12])
    assert kernel.calls[-1][0][0] == kernel.calls[-1][0][1]


def test_other_ways_to_give_arrays_are_handed_on():
    kernel = transposition()
    x, y = FLOATS, np.zeros((4, 6), np.float32)
    for given, named in (
        ((), {"x": x}),
        ((), {}),
        ((x, x), {}),
        ((x,), {"y": y}),
        ((x,), {"out": y, "x": x}),
    ):
        assert kernel.call(*given, **named) == "seen"
        assert kernel.seen[-1][0] == given
        assert kernel.seen[-1][1].keys() == named.keys()


@both
@pytest.mark.parametrize(
    ("dtype", "below"),
    [
        *(("int8", 1), ("int8", 100), ("int8", 2**7), ("uint16", 1), ("uint16", 300)),
        *(("uint16", 2**15 + 1), ("int32", 1), ("int32", 300), ("int32", 2**31)),
    ],
)
def test_an_index_beyond_its_limits_is_handed_on_wherever_it_is(kind, dtype, below):
    kernel = Kernel(array("x", 6, 4), indices(67, below=below, dtype=dtype), array("y", 6, 4))
    x, limits = kind(FLOATS), np.iinfo(dtype)
    right = np.random.default_rng(0).integers(0, below, 67).astype(dtype)
    right[[5, 66]] = 0, below - 1
    beyond = {-1, limits.min, below, limits.max, below + 2**8, below + 2**16} - {0, below - 1}
    wrong = [value for value in sorted(beyond) if limits.min <= value <= limits.max]
    out = kind(np.zeros((6, 4), np.float32))
    assert kernel.call(x, kind(right), out=out) is out
    for value in wrong:
        for place in range(67):
            spoilt = right.copy()
            spoilt[place] = value
            assert kernel.call(x, kind(spoilt), out=out) == "seen"
    assert kernel.call(x, kind(right[:0]), out=out) == "seen"
    assert len(kernel.calls) == 1


@both
@pytest.mark.parametrize("dtype", ["int8", "int32"])
def test_a_sorted_table_that_falls_is_handed_on_wherever_it_does(kind, dtype):
    operand = indices(5, 13, below=70, dtype=dtype, rising=True)
    kernel = Kernel(operand, array("y", 6, 4))
    rising = np.arange(1, 66, dtype=dtype).reshape(5, 13)
    out = np.zeros((6, 4), np.float32)
    for right in (rising, rising // 9, rising * 0):
        assert kernel.call(kind(right), out=out) is out
    for place in range(1, 65):
        falling = rising.copy()
        falling.flat[place] -= 2
        assert kernel.call(kind(falling), out=out) == "seen"
    for wrong in (rising - 2, rising + 5):
        assert kernel.call(kind(wrong), out=out) == "seen"
    assert len(kernel.calls) == 3


@both
def test_pointers_that_end_elsewhere_are_handed_on(kind):
    kernel = Kernel(indices(5, below=10, rising=True), array("y", 6, 4), last=9)
    out = np.zeros((6, 4), np.float32)
    pointers = np.array([0, 2, 2, 7, 9], np.int32)
    assert kernel.call(kind(pointers), out=out) is out
    for last in (7, 8, 10, -1):
        wrong = np.append(pointers[:-1], np.int32(last))
        assert kernel.call(kind(wrong), out=out) == "seen"
    assert len(kernel.calls) == 1


def test_wrong_indices_give_their_workspace_back():
    kernel = Kernel(indices(8, below=9), array("y", 6, 4), scratch=100)
    table = np.arange(8, dtype=np.int32)
    for fits in (True, False, False, True):
        found = kernel.call(table if fits else table - 1, out=np.zeros((6, 4), np.float32))
        assert isinstance(found, str) is not fits
    assert len(kernel.made) == 1


def test_indices_that_lie_in_their_order_alone_are_looked_at_at_once():
    out = array("y", 6, 4)
    for given, at_once in (
        ({"order": (1, 0)}, True),
        ({"order": (1, 0), "rising": True}, False),
        ({"leading": 5}, False),
    ):
        operand = indices(6, 4, below=9, **given)
        kernel = Kernel(operand, out)
        table = operand.array(np.zeros((6, 4)))
        found = kernel.call(table, out=np.zeros((6, 4), np.float32))
        assert isinstance(found, str) is not at_once
        assert len(kernel.calls) == at_once
