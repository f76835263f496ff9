"""Tables of axes that are reduced, such as keys of attention: calls cannot be cut along them, and
kernels that take their number serve all."""

from __future__ import annotations

import numpy as np
import pytest

from tests.scheduler.dispatch.records import a_schedule, put
from tilewright.scheduler.dispatch import open_kernels
from tilewright.scheduler.dispatch.costs import known_kernels
from tilewright.scheduler.dispatch.family import family_of
from tilewright.scheduler.dispatch.finding import Tables
from tilewright.scheduler.dispatch.function import Dispatch
from tilewright.scheduler.dispatch.making import dispatch_table, tuned_table
from tilewright.scheduler.dispatch.open_kernels import open_function, open_seconds, time_open
from tilewright.scheduler.dispatch.profile import as_profile
from tilewright.scheduler.dispatch.table import Row, table_from_json
from tilewright.spaces.errors import InputError
from tilewright.spaces.target import as_target, detect_target

TARGET = detect_target("cpu")
SIZE = 40
PROGRAM = "y[h, e] = sum[j](softmax[j](sum[d](q[h, d] * k[j, h, d])) * v[j, h, e])"
TEXT = f'"{PROGRAM}" h=2 d=16 e=8'
PROFILE = as_profile(f"1-{SIZE}:1")
FAMILY = family_of(TEXT, "j", PROFILE)


def searched(monkeypatch, seconds=1e-3):
    """Let searches find a schedule of ``seconds`` for each size."""
    sizes = []

    def search(suite, target, known, **about):
        found = [member.workload.extents["j"] for member in suite.members]
        put(known, dict.fromkeys(found, seconds), target, TEXT, "j")
        sizes.extend(found)

    monkeypatch.setattr("tilewright.scheduler.suites.tune.tune_suite", search)
    return sizes


def given(keys, seed=0):
    draw = np.random.default_rng(seed).standard_normal
    return [draw(s).astype(np.float32) for s in ((2, 16), (keys, 2, 16), (keys, 2, 8))]


def attention(q, k, v):
    scores = np.einsum("hd,jhd->hj", *(each.astype(np.float64) for each in (q, k)))
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return np.einsum("hj,jhe->he", weights / weights.sum(1, keepdims=True), v)


def test_calls_are_not_cut_along_such_an_axis():
    assert not FAMILY.independent
    assert (FAMILY.inputs, FAMILY.outputs) == ((None, 0, 0), (None,))


def test_one_tuned_kernel_serves_every_number_of_keys(database, monkeypatch):
    sizes = searched(monkeypatch)
    table = tuned_table(TEXT, PROFILE, database, 1, "j", TARGET, seconds=8)
    assert SIZE in sizes
    assert table.rows[-1].last == SIZE
    assert table.kernels[-1].opened
    call = Dispatch(table_from_json(table.to_json()))
    for keys in range(1, SIZE + 1):
        arrays = given(keys, keys)
        np.testing.assert_allclose(call(*arrays), attention(*arrays), rtol=1e-5, atol=1e-6)
    with pytest.raises(InputError, match=f"j={SIZE + 1} is not in the table"):
        call(*given(SIZE + 1))
    found = Tables(database, TARGET).of(FAMILY)
    assert found is not None
    assert found.rows == table.rows


def test_kernels_of_fixed_sizes_serve_no_other_ones(database):
    put(database, {8: 1e-3, SIZE: 1e-3}, TARGET, TEXT, "j")
    with pytest.raises(InputError, match=r"no kernel on record takes j=5, .* \(--tune\)"):
        dispatch_table(TEXT, PROFILE, database, 2, "j", TARGET)
    assert Tables(database, TARGET).of(FAMILY) is None
    time_open(FAMILY, SIZE, [a_schedule(SIZE, TARGET, TEXT, "j")], TARGET, database)
    table = dispatch_table(TEXT, PROFILE, database, 1, "j", TARGET)
    assert {(row.size, row.torch) for row in table.rows} == {(SIZE, False)}


def test_a_machine_without_such_a_kernel_refuses_other_sizes(database, monkeypatch):
    put(database, {SIZE: 1e-3}, TARGET, TEXT, "j")
    time_open(FAMILY, SIZE, [a_schedule(SIZE, TARGET, TEXT, "j")], TARGET, database)
    table = dispatch_table(TEXT, PROFILE, database, 1, "j", TARGET)
    assert table.rows == (Row(1, SIZE, SIZE),)
    module = "tilewright.scheduler.dispatch.open_functions.open_function"
    monkeypatch.setattr(module, lambda *_: None)
    call = Dispatch(table)
    arrays = given(SIZE)
    np.testing.assert_allclose(call(*arrays), attention(*arrays), rtol=1e-5, atol=1e-6)
    with pytest.raises(InputError, match=f"takes j=7; allowed: {SIZE}"):
        call(*given(7))
    arrays = given(7)
    np.testing.assert_array_equal(Dispatch(table, otherwise=attention)(*arrays), attention(*arrays))


def test_a_wrong_kernel_is_not_recorded(database, monkeypatch):
    schedule = a_schedule(SIZE, TARGET, TEXT, "j")
    right = open_kernels.OpenFunction.__call__

    def wrong(self, *arrays, **named):
        found = right(self, *arrays, **named)
        if len(arrays[1]) == 13:
            found[1, 7] *= 1.001
        return found

    assert open_function(FAMILY, SIZE, schedule, TARGET) is not None
    monkeypatch.setattr(open_kernels.OpenFunction, "__call__", wrong)
    time_open(FAMILY, SIZE, [schedule], TARGET, database)
    assert open_seconds(FAMILY, SIZE, [schedule], TARGET, database) == {}
    assert not known_kernels(FAMILY, PROFILE, TARGET, database)


@pytest.mark.parametrize(
    ("text", "target", "says"),
    [
        ('"y[i] = sum[j](x[j, i])" i=9', "cpu", "calls cannot be cut along j, and"),
        (TEXT, "cuda:sm_90a", "calls cannot be cut along j, and kernels of .* have fixed extents"),
    ],
)
def test_axes_without_open_kernels_are_refused_before_a_search(text, target, says, database):
    with pytest.raises(InputError, match=says):
        tuned_table(text, PROFILE, database, 1, "j", as_target(target), seconds=8)
