"""Tables that are seldom drawn."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.measure.drawing.draw import one_draw
from tilewright.measure.drawing.tables import ENDS, tables_of, with_other_tables
from tilewright.spaces.language.inputs import check_inputs
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.operators import workload


@pytest.mark.parametrize(("rows", "groups"), [(37, 5), (4, 9), (6, 1), (1, 3), (7, 2)])
def test_every_kind_of_table_is_there_and_valid(rows, groups):
    made = workload("grouped_matmul", t=rows, n=4, k=3, experts=groups)
    first = one_draw(made, 0)
    tables = []
    for draw in with_other_tables(first):
        check_inputs(made.program, draw.inputs)
        assert draw.inputs["A"] is first.inputs["A"]
        assert draw.allowed().keys() == {"C"}
        tables.append(draw.inputs["expert"].tolist())
    assert [0] * rows in tables
    assert [groups - 1] * rows in tables
    if groups > 2:
        assert any(0 not in table and groups - 1 not in table for table in tables)
    if rows > groups > 1:
        assert any(table.count(0) == 1 for table in tables)


def lengths(table: np.ndarray, below: int) -> list[int]:
    """Of all segments, empty ones too."""
    return np.bincount(table, minlength=below).tolist()


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("rows", "groups"), [(70, 5), (150, 4), (512, 8), (300, 64), (4096, 8), (4096, 64), (5000, 128)]
)
def test_segments_have_every_remainder_and_lie_about_every_tile(rows, groups, seed):
    made = workload("grouped_matmul", t=rows, n=2, k=2, experts=groups)
    given = [draw.inputs["expert"] for draw in with_other_tables(one_draw(made, seed))]
    found = [lengths(table, groups) for table in given]
    every = {length for table in found for length in table}
    for tile in range(2, 17):
        assert {length % tile for length in every if length < 3 * tile} == set(range(tile))
    for tile in (16, 32, 64, 128, 256, 512):
        if 4 * tile < rows:
            assert every.issuperset((tile - 1, tile, tile + 1)), tile
    assert 0 in every
    assert rows in every
    present = [[length for length in table if length] for table in found]
    various = [table for table in present if len(set(table)) > 2]
    assert any(table == sorted(table) for table in various)
    assert any(table == sorted(table, reverse=True) for table in various)
    again = with_other_tables(one_draw(made, 7))
    assert all(
        np.array_equal(t, draw.inputs["expert"]) for t, draw in zip(given, again, strict=True)
    )


@pytest.mark.parametrize("rows", [3, 8, 100])
def test_lengths_are_of_every_size_at_which_kernels_change(rows):
    text = f'"n: int32[i](index < 1025); where j < n[i]; y[i] = sum[j](x[i,j])" i={rows} j=1024'
    made = workload(text)
    found = []
    for draw in with_other_tables(one_draw(made, 0)):
        check_inputs(made.program, draw.inputs)
        found.append(draw.inputs["n"].tolist())
    assert len(found) == tables_of(made.program) <= 16
    assert [0] * rows in found
    assert [1024] * rows in found
    every = {length for table in found for length in table}
    assert every.issuperset((0, 1, 2, 3, 4, 5, 31, 32, 33, 1023, 1024))
    if rows > 3:
        assert every.issuperset((*range(34), 63, 64, 65, 127, 128, 129, 511, 512, 513))
    assert any(table == sorted(table, reverse=True) for table in found[2:])


@pytest.mark.parametrize("text", ["matmul m=4 n=4 k=4", "softmax r=4 c=4"])
def test_programs_without_tables_have_no_others(text):
    assert list(with_other_tables(one_draw(workload(text), 0))) == []


def test_all_tables_are_drawn_and_nothing_else():
    made = workload("grouped_matmul", t=9, n=4, k=3, experts=3, rows=5)
    first = one_draw(made, 0)
    found = list(with_other_tables(first))
    for draw in found:
        check_inputs(made.program, draw.inputs)
        assert draw.inputs["A"] is first.inputs["A"]
        assert draw.inputs["B"] is first.inputs["B"]
    assert len({tuple(draw.inputs["row"]) for draw in found}) > 3


def test_of_many_rows_those_are_judged_at_which_segments_end():
    made = workload("grouped_matmul t=4096 n=64 k=64 experts=8")
    first = one_draw(made, 0)
    for draw in with_other_tables(first, most=1 << 15):
        assert draw.rows is not None
        table, judged = draw.inputs["expert"], draw.rows.which["t"]
        ends = np.append(np.flatnonzero(np.diff(table)), 4095)
        assert judged.size < 512
        assert np.isin(ends, judged).all()
        if ends.size == 8:
            tails = (ends[:, None] - np.arange(ENDS)).ravel()
            assert np.isin(tails[tails >= 0], judged).mean() > 0.5
        low, _ = draw.allowed()["C"]
        assert np.isfinite(low[judged]).any(axis=1).all()


PAGED = (
    "t: int32[b,14](index < {pages}); k: bfloat16[{pages},16,d]; v: bfloat16[{pages},16,e]; "
    "y[b,i,e] = sum[j](softmax[j](sum[d](q[b,i,d] * k[t[b,j // 16],j % 16,d]) * 0.2) "
    "* v[t[b,j // 16],j % 16,e])"
)


def by_pages(inputs) -> np.ndarray:
    """What a right kernel makes of them whose weights are rounded to bfloat16."""
    q, k, v = (inputs[name].astype(np.float64) for name in "qkv")
    k, v = (pages[inputs["t"]].reshape(len(q), 224, -1)[:, :211] for pages in (k, v))
    scores = 0.2 * q @ k.transpose(0, 2, 1)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    rounded = weights.astype(inputs["q"].dtype).astype(np.float64)
    return (rounded @ v) / weights.sum(-1, keepdims=True)


@pytest.mark.parametrize("pages", [3, 40])
def test_weights_that_repeat_with_their_pages_may_be_rounded(pages):
    """As pages come again, so do roundings, which do not cancel out then."""
    sizes = {"b": 6, "i": 145, "j": 211, "d": 64, "e": 64}
    made = workload(PAGED.format(pages=pages), **sizes, dtype="bfloat16")
    first = one_draw(made, 0)
    draws = [first, *with_other_tables(first)]
    assert len(draws) == 1 + tables_of(made.program) > 2
    for draw in draws:
        low, high = draw.allowed()["y"]
        found = by_pages(draw.inputs)
        assert np.all((low <= found) & (found <= high))
        half = by_pages({**draw.inputs, "v": draw.inputs["v"] * np.arange(16)[:, None] // 8 * 2})
        assert not np.all((low <= half) & (half <= high))


@pytest.mark.parametrize(("rows", "entries"), [(5, 37), (40, 9), (1, 20)])
def test_pointers_are_of_every_kind_and_valid(rows, entries):
    text = "ptr: int32[r+1](sorted < e+1); y[r, c] = sum[e: ptr[r] <= e < ptr[r + 1]](x[e, c])"
    made = workload(text, r=rows, e=entries, c=3)
    counts = []
    for draw in with_other_tables(one_draw(made, 0)):
        check_inputs(made.program, draw.inputs)
        counts.append(np.diff(draw.inputs["ptr"]).tolist())
        assert draw.allowed().keys() == {"y"}
    assert [entries, *[0] * (rows - 1)] in counts
    assert [*[0] * (rows - 1), entries] in counts
    if rows > 2:
        assert any(own[0] == own[-1] == 0 for own in counts)


def test_packed_codes_are_not_all_equal_where_fast_kernels_are_to_be_right():
    text = "q: uint2[n, k](packed); y[m, n] = sum[k](a[m, k] * (q[n, k] - 3) * s[n])"
    first = one_draw(workload(text, m=2, n=8, k=32), 0)
    found = {
        numerics: [np.ptp(draw.inputs["q"]) for draw in with_other_tables(first, numerics=numerics)]
        for numerics in Numerics
    }
    assert 0 in found[Numerics.STRICT]
    assert found[Numerics.FAST]
    assert 0 not in found[Numerics.FAST]
