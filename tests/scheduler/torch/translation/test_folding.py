"""Regions that differ by neighbouring axes that act as one have one key."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.scheduler.torch.translated import check, translation_of
from tilewright.scheduler.torch.kernels.functions import key_of
from tilewright.spaces.operators import program_workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import detect_target

W = torch.randn(24, 16)


def key(function, *shapes):
    """The key of a function of random tensors, which is right."""
    inputs = [torch.randn(shape) if isinstance(shape, tuple) else shape for shape in shapes]
    check(function, *inputs)
    return key_of(program_workload(translation_of(function, inputs).text, {}))


def linear(x, w, r):
    return nn.functional.gelu(nn.functional.linear(x, w)) + r


def test_rows_in_two_dimensions_are_rows():
    assert key(linear, (4, 8, 16), W, (4, 8, 24)) == key(linear, (32, 16), W, (32, 24))
    assert key(linear, (2, 2, 8, 16), W, (2, 2, 8, 24)) == key(linear, (32, 16), W, (32, 24))


def test_rows_of_a_reduction_are_rows():
    def norm(x):
        return (x - x.mean(-1, True)) * x.square().sum(-1, True).rsqrt()

    assert key(norm, (4, 8, 16)) == key(norm, (32, 16))


def test_dimensions_that_are_reduced_together_are_one():
    assert key(lambda x: x.sum((1, 2)), (6, 4, 8)) == key(lambda x: x.sum(1), (6, 32))


def test_batch_and_heads_are_one_where_nothing_tells_them_apart():
    def attention(q, k, v):
        return nn.functional.scaled_dot_product_attention(q, k, v)

    apart, together = [(2, 3, 8, 16)] * 3, [(1, 6, 8, 16)] * 3
    assert key(attention, *apart) == key(attention, *together)


def test_conditions_on_axes_have_one_spelling():
    """Sums of what is seen, by ``where`` and by filling what is not seen."""

    def key_of_sum(masked):
        def function(x):
            places = torch.arange(12)
            return masked(x, places[:, None], places).sum(-1) * 2

        return key(function, (12, 12))

    first = key_of_sum(lambda x, i, j: torch.where(j <= i, x, 0))
    assert first == key_of_sum(lambda x, i, j: torch.where(i >= j, x, 0))
    assert first == key_of_sum(lambda x, i, j: x.masked_fill(j > i, 0))
    assert first == key_of_sum(lambda x, i, j: torch.where(torch.logical_not(j <= i), 0, x))
    assert first != key_of_sum(lambda x, i, j: torch.where(j < i, x, 0))


APART = {
    "one axis alone": (lambda x, w, b: x @ w.T + b, [(4, 8, 16), W, (8, 1)]),
    "gaps": (lambda x: x.sum((1, 2)), [torch.randn(6, 4, 9)[:, :, :8]]),
    "another order": (lambda x: (x + x.sum(2, True)).transpose(0, 1).clone(), [(4, 8, 16)]),
}


@pytest.mark.parametrize(("function", "shapes"), APART.values(), ids=APART)
def test_axes_that_act_apart_stay(function, shapes):
    text = key(function, *shapes)
    assert "=4" in text, text
    assert "=8" in text, text


def group_norm(x, w, b):
    """Group normalisation as Inductor writes it, in the shape of its groups."""
    n, c, *pixels = x.shape
    grouped = x.view(n, 3, c // 3, -1)
    variance, mean = torch.var_mean(grouped, (2, 3), correction=0, keepdim=True)
    scale = (variance + 1e-5).rsqrt() * w.view(1, 3, c // 3, 1)
    shift = b.view(1, 3, c // 3, 1) - mean * scale
    ones = (1,) * len(pixels)
    return x * scale.reshape(n, c, *ones) + shift.reshape(n, c, *ones)


@pytest.mark.parametrize("pixels", [(10,), (2, 5), (1, 5, 2)])
def test_norms_of_groups_are_written_in_the_shape_that_they_reduce(pixels):
    inputs = [torch.randn(2, 6, *pixels), torch.randn(6), torch.randn(6)]
    text = check(group_norm, *inputs).text
    assert "//" not in text, text
    assert "%" not in text, text
    assert list(space_for(program_workload(text, {}), detect_target("cpu")).templates) == ["rows"]


def test_arrays_that_are_read_in_part_keep_their_dimensions():
    def ends(x):
        return x.view(3, -1).sum(1, True) * x[:, 0, :3]

    text = check(ends, torch.randn(3, 4, 6)).text
    assert "x0: float32[3, 4, 6]" in text
