"""Task mappings: every task is done once, composition, and what is refused."""

from collections import Counter
from itertools import product
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.spaces.algebra.mappings import atoms, mappings
from tilewright.spaces.algebra.mapping import repeat, spatial

triples = st.integers(1, 3).flatmap(lambda rank: st.tuples(mappings(rank, 2), *[atoms(rank)] * 2))


def all_tasks(mapping, extents=None):
    return [t for w in range(mapping.num_workers) for t in mapping.tasks(w, extents)]


def grid(shape):
    return set(product(*map(range, shape)))


def composed_by_definition(outer, inner, worker):
    w_outer, w_inner = divmod(worker, inner.num_workers)
    return [
        tuple(t * n + s for t, n, s in zip(task, inner.task_shape, step, strict=True))
        for task in outer.tasks(w_outer)
        for step in inner.tasks(w_inner)
    ]


@settings(max_examples=60, deadline=None)
@given(mappings())
def test_every_task_is_done_exactly_once(mapping):
    tasks = all_tasks(mapping)
    assert len(tasks) == prod(mapping.task_shape)
    assert set(tasks) == grid(mapping.task_shape)


@settings(max_examples=60, deadline=None)
@given(triples)
def test_composition_means_what_it_says_and_is_associative(three):
    f, g, h = three
    left, right = (f * g) * h, f * (g * h)
    assert left == right
    assert left.num_workers == f.num_workers * g.num_workers * h.num_workers
    assert left.task_shape == tuple(
        a * b * c for a, b, c in zip(f.task_shape, g.task_shape, h.task_shape, strict=True)
    )
    for worker in range(left.num_workers):
        assert left.tasks(worker) == composed_by_definition(f, g * h, worker)
        assert left.tasks(worker) == composed_by_definition(f * g, h, worker)


@settings(max_examples=60, deadline=None)
@given(st.data(), mappings())
def test_tails_leave_out_exactly_the_tasks_past_the_extents(data, mapping):
    extents = [data.draw(st.integers(0, n + 1)) for n in mapping.task_shape]
    inside = grid(mapping.task_shape) & grid(extents)
    assert Counter(all_tasks(mapping, extents)) == Counter(inside)
    for worker in range(mapping.num_workers):
        whole = mapping.tasks(worker)
        assert mapping.tasks(worker, extents) == [t for t in whole if t in inside]


@settings(max_examples=60, deadline=None)
@given(st.data(), mappings())
def test_projection_is_each_workers_shadow_without_repetition(data, mapping):
    ranks = data.draw(st.permutations(range(mapping.rank)))
    keep = ranks[: data.draw(st.integers(1, mapping.rank))]
    projected = mapping.project(keep)
    assert projected.num_workers == mapping.num_workers
    assert projected.task_shape == tuple(mapping.task_shape[r] for r in keep)
    for worker in range(mapping.num_workers):
        shadows = {tuple(task[r] for r in keep): None for task in mapping.tasks(worker)}
        own = projected.tasks(worker)
        assert len(own) == len(set(own))
        assert set(own) == set(shadows)
        if keep == sorted(keep):
            assert own == list(shadows)


def test_order_numbers_workers_and_repeats():
    assert [spatial(2, 3).tasks(w)[0] for w in range(4)] == [(0, 0), (0, 1), (0, 2), (1, 0)]
    columns = spatial(2, 3, order=(1, 0))
    assert [columns.tasks(w)[0] for w in range(4)] == [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert repeat(2, 2, order=(1, 0)).tasks(0) == [(0, 0), (1, 0), (0, 1), (1, 1)]


def test_composition_is_not_commutative():
    assert (spatial(2) * repeat(3)).tasks(1) == [(3,), (4,), (5,)]
    assert (repeat(3) * spatial(2)).tasks(1) == [(1,), (3,), (5,)]


def test_text_reads_like_the_program():
    mapping = spatial(4, 8) * repeat(2, 2, order=(1, 0))
    assert str(mapping) == "spatial(4, 8) * repeat(2, 2, order=[1, 0])"


@pytest.mark.parametrize("make", [spatial, repeat])
def test_malformed_mappings_are_refused(make):
    with pytest.raises(ValueError, match="shape"):
        make()
    with pytest.raises(ValueError, match="shape"):
        make(4, 0)
    with pytest.raises(ValueError, match="permutation"):
        make(4, 2, order=(0, 0))
    with pytest.raises(ValueError, match="ranks differ"):
        make(4) * make(4, 2)
    with pytest.raises(ValueError, match="worker 99"):
        make(4).tasks(99)
    with pytest.raises(ValueError, match="distinct"):
        make(4, 2).project([0, 0])


@pytest.mark.parametrize("extents", [(), (4,), (4, 2, 1)])
@pytest.mark.parametrize("mapping", [repeat(4, 2), spatial(4, 2), spatial(2, 1) * repeat(2, 2)])
def test_tasks_inside_extents_of_another_rank_are_refused(mapping, extents):
    with pytest.raises(ValueError, match="must have rank 2"):
        mapping.tasks(0, extents)
