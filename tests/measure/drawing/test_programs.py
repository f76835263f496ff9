"""Fresh inputs of programs, and what is allowed of their outputs."""

import numpy as np
import pytest

from tests.spaces.recurrent_programs import TEXTS, extents_of
from tilewright.measure.drawing import programs
from tilewright.measure.drawing.draw import are_for, check_sensitivity, fresh_inputs, one_draw
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.numerics.allowance import agrees
from tilewright.spaces.operators import workload

WORKLOADS = [
    "softmax r=7 c=33",
    "layernorm r=7 c=33 dtype=bfloat16",
    "embedding t=12 d=5 words=4",
    "argmax shape=64x9 over=1",
]
SEVERAL = "y[r,c] = x[r,c] * 2\ns[r] = sum[c](x[r,c])\ni[r] = argmax[c](x[r,c])\n-> y, s, i"


@pytest.mark.parametrize("text", WORKLOADS)
def test_each_draw_is_another_and_allows_what_is_right(text):
    work = workload(text)
    fresh = fresh_inputs(work, 1)
    draws = [fresh.draw(seed) for seed in range(3)]
    for draw in draws:
        exact = evaluate(work.program, draw.inputs)
        for output in work.outputs:
            low, high = draw.allowed()[output.name]
            assert low.shape == high.shape == output.shape
            assert agrees(output.element.cast(exact[output.name]), low, high).all()
    assert any((draws[0].inputs[o.name] != draws[1].inputs[o.name]).any() for o in work.inputs)
    assert all(
        (fresh_inputs(work, 1).draw(2).inputs[o.name] == draws[2].inputs[o.name]).all()
        for o in work.inputs
    )


def test_a_search_knows_some_rows_of_a_large_program_and_a_final_all(monkeypatch):
    monkeypatch.setattr(programs, "SEARCH_POINTS", 40 * 17)
    monkeypatch.setattr(programs, "PIECE", 100 * 17)
    work = workload(SEVERAL, r=1000, c=17)
    fresh = fresh_inputs(work, 1)
    known = []
    for seed in (1, 2):
        draw = fresh.draw(seed)
        exact = evaluate(work.program, draw.inputs)
        for name, (low, high) in draw.allowed().items():
            assert agrees(exact[name], low, high).all()
        known.append(np.isfinite(draw.allowed()["s"][0]))
        assert known[-1].sum() == 40
        assert np.isfinite(draw.allowed()["y"][1]).sum() == 40 * 17
        assert known[-1][[0, 999]].all()
    assert (known[0] != known[1]).any()
    final = fresh.draw(3, final=True)
    exact = evaluate(work.program, final.inputs)
    for name, (low, high) in final.allowed().items():
        assert np.isfinite(low).all()
        assert np.isfinite(high).all()
        assert agrees(exact[name], low, high).all()


def test_where_no_rows_are_independent_one_draw_serves_a_search(monkeypatch):
    monkeypatch.setattr(programs, "SEARCH_POINTS", 100)
    work = workload("s[r] = sum[c](x[r,c])\nt[c] = sum[r](x[r,c])\n-> s, t", r=40, c=50)
    fresh = fresh_inputs(work, 1)
    assert fresh.draw(1) is fresh.draw(2)
    final = fresh.draw(3, final=True)
    assert (final.inputs["x"] != fresh.draw(4).inputs["x"]).any()
    assert np.isfinite(final.allowed()["t"][0]).all()


def test_the_work_can_be_ended():
    def pause():
        raise KeyboardInterrupt

    fresh = fresh_inputs(workload("softmax r=8 c=8"), 1, pause)
    with pytest.raises(KeyboardInterrupt):
        fresh.draw(1).allowed()


def test_arrays_may_be_handed_in():
    work = workload(SEVERAL, r=4, c=8)
    out = {
        o.name: (np.zeros(o.shape, kind), np.zeros(o.shape, kind))
        for o, kind in zip(work.outputs, (np.float32, np.float32, np.float64), strict=True)
    }
    draw = one_draw(work, 1)
    filled, new = draw.allowed(out), draw.allowed()
    for name, ends in out.items():
        for given, end, other in zip(ends, filled[name], new[name], strict=True):
            assert given is end
            assert (end == other).all()
            assert end.dtype == other.dtype


def test_what_cannot_be_verified_is_refused():
    with pytest.raises(InputError, match="cannot be verified"):
        check_sensitivity(workload("y[r] = x[r] - x[r]", r=16))


def test_equal_programs_of_other_names_have_inputs_of_their_own():
    one, other = workload("y[r] = x[r] + 1", r=16), workload("b[i] = a[i] + 1", i=16)
    assert one == other
    fresh = fresh_inputs(one, 1)
    assert are_for(fresh, one)
    assert not are_for(fresh, other)


@pytest.mark.parametrize(("name", "lanes"), [("selective", 512), ("state space", 64)])
def test_pieces_of_a_state_walk_along_positions_a_few_times(name, lanes):
    extents = extents_of(name, t=1024, s=1024, d=16, e=lanes, h=64)
    work = workload(TEXTS[name], **extents)
    draw = fresh_inputs(work, 1).draw(1, final=True)
    assert draw.rows is None
    pieces = [rows.which for rows in draw._pieces()]
    assert 1 < len(pieces) < 20
    axis = "e" if name == "selective" else "h"
    found = np.sort(np.concatenate([which[axis] for which in pieces]))
    np.testing.assert_array_equal(found, np.arange(extents[axis]))
    assert all("t" not in which for which in pieces)


def test_states_are_judged_at_all_positions_and_right_in_pieces(monkeypatch):
    monkeypatch.setattr(programs, "PIECE_OF_STATE", 1 << 10)
    work = workload(TEXTS["state space"], **extents_of("state space", h=5))
    draw = fresh_inputs(work, 1).draw(1, final=True)
    assert len(list(draw._pieces())) > 1
    low, high = draw.allowed()["y"]
    exact = work.outputs[0].element.cast(evaluate(work.program, draw.inputs)["y"])
    assert agrees(exact, low, high).all()
    assert np.isfinite(low).all()
