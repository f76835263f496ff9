"""Arrays that do not fit a kernel are handed on to a closer look."""

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
