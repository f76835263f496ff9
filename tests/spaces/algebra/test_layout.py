from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.spaces.c_program import run_c
from tilewright.spaces.algebra.layout import column_major, permuted, row_major, strided, swizzled


@st.composite
def dense(draw, rank):
    shape = draw(st.tuples(*[st.integers(1, 3)] * rank))
    layout = draw(st.sampled_from((row_major, column_major)))(*shape)
    if draw(st.booleans()):
        layout = layout.padded(draw(st.integers(0, rank - 1)), draw(st.integers(0, 3)))
    return layout


@st.composite
def layouts(draw, rank=2):
    layout = draw(dense(rank))
    for _ in range(draw(st.integers(0, 2))):
        layout = layout * draw(dense(rank))
    if draw(st.booleans()):
        bits = draw(st.integers(1, 3))
        layout = swizzled(layout, bits, draw(st.integers(0, 2)), bits + draw(st.integers(0, 2)))
    return layout * draw(dense(rank)) if draw(st.booleans()) else layout


def points(layout):
    return list(product(*map(range, layout.shape)))


@settings(max_examples=80, deadline=None)
@given(layouts())
def test_no_two_elements_share_a_place_and_all_are_inside(layout):
    offsets = [layout.offset(*point) for point in points(layout)]
    assert len(set(offsets)) == prod(layout.shape)
    assert min(offsets) >= 0
    assert max(offsets) < layout.size


@settings(max_examples=60, deadline=None)
@given(dense(2), dense(2), layouts())
def test_tiling_means_what_it_says_and_is_associative(f, g, h):
    tiled, other = (f * g) * h, f * (g * h)
    assert tiled.shape == other.shape
    assert tiled.size == other.size == f.size * g.size * h.size
    pair = f * g
    for point in points(pair):
        tile = [i // n for i, n in zip(point, g.shape, strict=True)]
        inside = [i % n for i, n in zip(point, g.shape, strict=True)]
        assert pair.offset(*point) == f.offset(*tile) * g.size + g.offset(*inside)
    for point in points(tiled)[::7]:
        assert tiled.offset(*point) == other.offset(*point)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.integers(0, 3), st.integers(0, 3))
def test_swizzle_is_its_formula_and_a_bijection(bits, base, extra):
    shift = bits + extra
    size = 2 ** (base + shift + bits)
    layout = swizzled(row_major(size), bits, base, shift)
    offsets = [layout.offset(i) for i in range(size)]
    formula = [i ^ (((i >> (base + shift)) & (2**bits - 1)) << base) for i in range(size)]
    assert offsets == formula
    assert sorted(offsets) == list(range(size))


def test_the_128_byte_swizzle_spreads_a_column_over_all_banks():
    layout = swizzled(row_major(8, 64), bits=3, base=3, shift=3)  # 2-byte elements
    for column in range(0, 64, 8):
        banks = {layout.offset(row, column) * 2 // 16 % 8 for row in range(8)}
        assert banks == set(range(8))


def test_strides_agree_with_numpy():
    array = np.zeros((3, 5, 7))
    strides = [s // array.itemsize for s in array.strides]
    assert row_major(3, 5, 7) == strided((3, 5, 7), strides)
    strides = [s // array.itemsize for s in np.asfortranarray(array).strides]
    assert column_major(3, 5, 7) == strided((3, 5, 7), strides)


def test_padding_moves_the_slower_ranks_apart():
    assert row_major(4, 32).padded(1, 8).strides == (40, 1)
    assert row_major(4, 32).padded(1, 8).size == 160
    assert column_major(4, 32).padded(0, 1).strides == (1, 5)
    assert row_major(2, 3, 4).padded(1, 1).strides == (16, 4, 1)


@settings(max_examples=3, deadline=None, phases=[Phase.generate])  # no shrinking: slow
@given(st.lists(layouts(), min_size=40, max_size=40))
def test_emitted_c_gives_the_offsets(many):
    functions, calls, expected = [], [], []
    for number, layout in enumerate(many):
        functions.append(f"long f{number}(long i, long j) {{ return {layout.emit('i', 'j')}; }}")
        for i, j in points(layout)[::5]:
            calls.append(f'printf("%ld\\n", f{number}({i}, {j}));')
            expected.append(str(layout.offset(i, j)))
    main = "\n".join(["int main(void) {", *calls, "return 0; }"])
    text = "\n".join(["#include <stdio.h>", *functions, main])
    assert run_c(text) == expected


def test_emitted_c_is_simple():
    assert row_major(64, 1).emit("i", "j") == "i"
    assert row_major(8, 64).emit("i", 3) == "64 * i + 3"
    packed = row_major(16, 1) * column_major(6, 256)  # panels of six rows
    assert packed.emit("6 * p", "k").count("/") == 1
    assert packed.emit(0, "k") == "6 * k"
    swizzle = swizzled(row_major(8, 64), bits=3, base=3, shift=3)
    assert swizzle.emit("r", "c") == "64 * r + (c ^ (8 * r))"


def test_a_permuted_layout_is_read_in_another_order():
    plain = row_major(2, 3, 4)
    turned = permuted(plain, 2, 0, 1)
    assert turned.shape == (4, 2, 3)
    assert all(turned.offset(k, i, j) == plain.offset(i, j, k) for i, j, k in points(plain))


@pytest.mark.parametrize("order", [(0, 0), (1,), (0, 1, 2), (1, 2), (-1, 0), ()])
def test_an_order_that_is_no_permutation_is_refused(order):
    with pytest.raises(ValueError, match=r"is no permutation of the ranks of \(2, 3\)"):
        permuted(row_major(2, 3), *order)


def test_malformed_layouts_are_refused():
    with pytest.raises(ValueError, match="fit"):
        strided((2, 3), (1,))
    with pytest.raises(ValueError, match="fit"):
        strided((2, 3), (3, -1))
    with pytest.raises(ValueError, match="bits"):
        swizzled(row_major(64), bits=3, base=0, shift=2)
    with pytest.raises(ValueError, match="rank 1"):
        row_major(2, 3).emit("i")
    with pytest.raises(ValueError, match="outside"):
        row_major(2, 3).offset(2, 0)


@pytest.mark.parametrize(("elements", "size"), [(1, 8), (8, 8), (9, 16), (15, 16), (16, 16)])
def test_a_swizzle_takes_whole_blocks_of_memory_and_no_more(elements, size):
    assert swizzled(row_major(elements), bits=2, base=1, shift=2).size == size


@pytest.mark.parametrize("indices", [(), (0,), (0, 0, 0)])
def test_another_number_of_indices_is_refused_in_words(indices):
    layout = row_major(2, 3)
    for call in (layout.offset, layout.emit):
        with pytest.raises(
            ValueError, match=rf"rank {len(indices)} does not fit the shape \(2, 3\)"
        ):
            call(*indices)


def test_a_stride_of_zero_repeats_what_lies_there():
    repeated = strided((2, 3), (0, 1))
    assert [repeated.offset(*point) for point in points(repeated)] == [0, 1, 2, 0, 1, 2]
