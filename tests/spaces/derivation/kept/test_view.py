"""Programs seen along the axes that they keep: loops, borders, and what is no such program."""

from __future__ import annotations

import pytest

from tilewright.spaces.derivation.kept.tiles import Segment, moved, reach, segments
from tilewright.spaces.derivation.kept.view import KeptView, kept_of
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program
from tilewright.spaces.named.images.conv2d import conv2d
from tilewright.spaces.named.images.max_pool2d import max_pool2d


def extents(view: KeptView) -> tuple[list[int], list[int]]:
    return [loop.extent for loop in view.kept], [loop.extent for loop in view.taps]


def test_loops_lie_in_the_order_of_memory_and_are_as_few_as_can_be():
    sums = kept_of(program("y[n, c] = sum[h, w](x[n, h, w, c])", n=2, c=5, h=3, w=4))
    assert extents(sums) == ([2, 5], [12])
    turned = kept_of(program("y[c] = sum[w, h](x[h, w, c])", c=5, h=3, w=4))
    assert extents(turned) == ([5], [12])
    pool = kept_of(max_pool2d(n=2, c=3, h=8, w=9, r=2))
    assert extents(pool) == ([6, 7, 8], [2, 2])


def test_axes_of_one_element_leave_no_loop():
    depthwise = conv2d(n=1, c=6, h=7, w=7, o=6, r=3, s=3, groups=6, padding=1, layout="NHWC")
    assert extents(kept_of(depthwise)) == ([7, 7, 6], [3, 3])


def test_results_may_have_other_names_for_their_axes():
    view = kept_of(program("s[c] = sum[r](x[r, c]); y[d] = s[d] * b[d]", r=3, c=4, d=4))
    (x, b) = view.reads.values()
    assert x.step(view.lane.name) == b.step(view.lane.name) == 1


def test_an_output_may_be_along_an_axis_that_is_reduced():
    view = kept_of(program("s[i] = sum[j](x[j, i]); y[j] = 2 * s[j]", i=5, j=4))
    (kept,), (tap,), (x,) = view.kept, view.taps, view.reads.values()
    assert (kept.extent, tap.extent, x.step(kept.name), x.step(tap.name)) == (4, 4, 1, 5)


@pytest.mark.parametrize(
    ("text", "silences"),
    [
        ("y[q] = sum[s](inside(x[q + s - 1], 0) * f[s])", True),
        ("y[q] = sum[s](inside(x[q + s - 1], 0) * f[s] + 1)", False),
        ("y[q] = sum[s](inside(x[q + s - 1], 1) * f[s])", False),
        ("y[q] = max[s](inside(x[q + s - 1], -inf))", True),
        ("y[q] = max[s](inside(x[q + s - 1], 0))", False),
        ("y[q] = prod[s](inside(x[q + s - 1], 1))", True),
    ],
)
def test_what_is_outside_is_left_out_only_where_it_says_nothing(text, silences):
    view = kept_of(program(f"x: float32[5]; {text}", q=5, s=3))
    assert bool(view.neutral_outside) == silences


def test_borders_are_blocks_in_which_some_tap_may_be_outside():
    view = kept_of(program("x: float32[40]; y[q] = max[s](inside(x[q + s - 2], -inf))", q=40, s=5))
    lane = view.lane
    assert segments(view, lane, 8) == [Segment(0, 1, 8), Segment(1, 4, 8), Segment(4, 5, 8)]
    assert segments(view, lane, 1) == [Segment(0, 2, 1), Segment(2, 38, 1), Segment(38, 40, 1)]
    assert segments(view, lane, 64) == [Segment(0, 1, 40)]
    assert segments(view, lane, 16)[-1] == Segment(2, 3, 8)


def test_inner_blocks_never_leave_and_border_blocks_do():
    view = kept_of(max_pool2d(n=1, c=2, h=23, w=31, r=3, stride=2, padding=1))
    (access,) = view.reads.values()
    everywhere = {name: (0, extent - 1) for name, extent in view.extents.items()}
    for loop in view.kept[1:]:
        for turn in range(loop.extent):
            inside = all(
                low >= 0 and high < bound.extent
                for bound in access.bounds
                if bound.index.coefficient(loop.name)
                for low, high in [reach(bound.index, {**everywhere, loop.name: (turn, turn)})]
            )
            (found,) = (s for s in segments(view, loop, 1) if s.first <= turn < s.end)
            assert inside == (found == max(segments(view, loop, 1), key=lambda s: s.count))


def test_indices_move_with_tiles():
    view = kept_of(max_pool2d(n=1, c=2, h=23, w=31, r=3, stride=2))
    (access,) = view.reads.values()
    (_, p, q), (r, s) = view.kept, view.taps
    there = moved(access.offset, {p.name: 1, s.name: 2}, [s.name])
    assert there.constant == 2 * 31 + 2
    assert there.names == {view.kept[0].name, p.name, q.name, r.name}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("y[i] = 2 * x[i]", "reductions: none"),
        ("m[i] = max[j](x[i, j]); y[i] = sum[j](x[i, j] - m[i])", "reductions: m, y"),
        ("y[i] = argmax[j](x[j, i])", "a place that argmax finds"),
        ("y[k] = sum[i, j](x[k, i, j])", "no axis is kept"),
        ("where j <= i\ny[i] = sum[j](x[j, i])", "windows are whole"),
        ("s[j] = sum[i](x[i, j]); y[i, j] = x[i, j] / s[j]", "result for each element"),
        ("y[i] = sum[j](x[j, i] * j)", "a number made of axes"),
    ],
)
def test_refusals_say_why(text, words):
    with pytest.raises(InputError, match=words):
        kept_of(program(text, **{a: n for a, n in {"i": 4, "j": 6, "k": 1}.items() if a in text}))
