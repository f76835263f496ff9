from collections import Counter
from itertools import product
from math import prod

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from spaces.algebra.mapping import repeat, spatial
from tests.spaces.c_program import run_c

MOST = {1: 4, 2: 3, 3: 2}  # extents of one atom by rank: products stay small


@st.composite
def atoms(draw, rank):
    shape = draw(st.tuples(*[st.integers(1, MOST[rank])] * rank))
    order = draw(st.permutations(range(rank)))
    return draw(st.sampled_from((spatial, repeat)))(*shape, order=order)


@st.composite
def mappings(draw, rank=None, factors=3):
    rank = rank or draw(st.integers(1, 3))
    parts = draw(st.lists(atoms(rank), min_size=1, max_size=factors))
    product_ = parts[0]
    for part in parts[1:]:
        product_ = product_ * part
    return product_


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


# -- emitted C -------------------------------------------------------------------------------


FORMS = ("", "{}", "{} - 1 + 1", "{0} > 0 ? {0} : 0", "{} & 255")
"""How an extent is given: as a number, or as C text that binds less and less tightly."""


@st.composite
def emissions(draw):
    """A mapping and how to emit it: extents and bases as numbers and as C text."""
    mapping = draw(mappings())
    if mapping.rank > 1 and draw(st.booleans()):
        mapping = mapping.project(draw(st.permutations(range(mapping.rank)))[:2])
    bases = [draw(st.sampled_from((0, 0, 2, 5))) for _ in range(mapping.rank)]
    extents = [
        draw(st.one_of(st.none(), st.integers(b + 1, b + n)))
        for b, n in zip(bases, mapping.task_shape, strict=True)
    ]
    return {
        "mapping": mapping,
        "bases": bases,
        "extents": extents,
        "symbolic": draw(st.sampled_from(FORMS)),
        "unroll": draw(st.sampled_from((False, True, 1, 2))),
        "worker": draw(st.sampled_from(("w", "w + 0u", "u.x"))),
        "integer": draw(st.sampled_from(("long", "int"))),
    }


def c_of(number, case):
    """A C function that prints the tasks of a worker."""
    mapping, symbols = case["mapping"], []

    def given_as(form, name, value):
        if not form or value is None:
            return value
        symbols.append(f"volatile {case['integer']} {name} = {value};")
        return form.format(name)

    form = case["symbolic"]
    extents = [given_as(form, f"n{r}", n) for r, n in enumerate(case["extents"])]
    bases = [given_as(form and "{}", f"b{r}", b) for r, b in enumerate(case["bases"])]
    lines = mapping.emit(
        case["worker"],
        lambda i: [f'printf("{" %d" * len(i)};", {", ".join(f"(int){x}" for x in i)});'],
        extents=extents,
        base=bases,
        unroll=case["unroll"],
        integer=case["integer"],
    )
    start = f"static void f{number}(int w) {{ struct {{ unsigned x; }} u = {{w}};"
    return "\n".join([start, *symbols, *lines, "}"])


def meaning_of(case, worker):
    tasks = []
    for task in case["mapping"].tasks(worker):
        moved = [t + b for t, b in zip(task, case["bases"], strict=True)]
        limits = zip(moved, case["extents"], strict=True)
        if all(n is None or i < n for i, n in limits):
            tasks.append("".join(f" {i}" for i in moved) + ";")
    return "".join(tasks)


def emission(mapping, extents, **options):
    plain = {"bases": [0] * mapping.rank, "symbolic": "", "unroll": False, "integer": "long"}
    return {"mapping": mapping, "extents": extents, "worker": "w"} | plain | options


CORNERS = [
    emission(repeat(3, 3), [2, 2]),
    emission(repeat(3) * spatial(2), [0]),
    emission(repeat(3) * spatial(2), [3], bases=[5], symbolic="{}"),
    emission(repeat(3, 3), [2, 2], symbolic="{}"),
    emission(repeat(2, 2) * repeat(3, 3), [5, 4], symbolic="{}", integer="int"),
    emission(repeat(2, 2) * spatial(3, 2) * repeat(2, 3), [7, 8]),
    *(emission(spatial(4) * repeat(4), [6], bases=[2], symbolic=form) for form in FORMS),
    *(emission(repeat(4) * spatial(2) * repeat(2), [9], symbolic=form) for form in FORMS),
    emission(spatial(4) * repeat(4), [6], worker="w + 0u"),  # 6 - 12u is no small number
    emission(spatial(4) * repeat(4), [6], worker="u.x"),
    emission(repeat(4) * spatial(4) * repeat(3), [31], worker="u.x", unroll=2),
]


@settings(max_examples=4, deadline=None, phases=[Phase.explicit, Phase.generate])
@example(CORNERS)
@given(st.lists(emissions(), min_size=60, max_size=60))  # many to a program: compiling is slow
def test_emitted_c_does_what_the_mapping_means(cases):
    calls, expected = [], []
    for number, case in enumerate(cases):
        for worker in range(min(case["mapping"].num_workers, 40)):
            calls.append(f'f{number}({worker}); printf("\\n");')
            expected.append(meaning_of(case, worker))
    functions = "\n".join(c_of(number, case) for number, case in enumerate(cases))
    main = "\n".join(["int main(void) {", *calls, "return 0; }"])
    assert run_c(f"#include <stdio.h>\n{functions}\n{main}\n") == expected


def lines_of(mapping, worker="w", **options):
    return mapping.emit(worker, lambda i: [f"f({', '.join(x.text for x in i)});"], **options)


def test_whole_tiles_have_no_tests_and_no_idle_arithmetic():
    mapping = spatial(4, 1) * repeat(1, 2) * spatial(8, 1)
    assert lines_of(mapping, extents=(32, 2)) == [
        "for (long i0 = 0; i0 < 2; i0++) {",
        "  f(w, i0);",
        "}",
    ]


def test_a_rolled_loop_ends_at_the_extent():
    assert lines_of(repeat(16), extents=(13,)) == [
        "for (long i0 = 0; i0 < 13; i0++) {",
        "  f(i0);",
        "}",
    ]


def test_blocks_inside_blocks_share_the_bounds_they_know():
    def block(i):
        return lines_of(repeat(16), base=(i[0] * 16,), extents=(128,), prefix="j")

    assert repeat(8).emit("0", block) == [
        "for (long i0 = 0; i0 < 8; i0++) {",
        "  for (long j0 = 0; j0 < 16; j0++) {",
        "    f(16 * i0 + j0);",
        "  }",
        "}",
    ]


def test_written_out_loops_have_constant_indices_and_only_tasks_inside():
    assert lines_of(repeat(2, 3), extents=(2, 2), unroll=True) == [
        "f(0, 0);",
        "f(0, 1);",
        "f(1, 0);",
        "f(1, 1);",
    ]


def test_unrolled_cuda_loops_keep_their_length_and_test_inside():
    mapping = spatial(32) * repeat(4)
    assert lines_of(
        mapping, "threadIdx.x", extents=("n",), unroll=4, integer="int", language="cuda"
    ) == [
        "#pragma unroll 4",
        "for (int i0 = 0; i0 < 4; i0++) {",
        "  if (4 * (int)threadIdx.x + i0 < n) {",
        "    f(4 * (int)threadIdx.x + i0);",
        "  }",
        "}",
    ]


def test_two_emissions_may_not_fight_for_a_name():
    with pytest.raises(ValueError, match="prefix 'i'"):
        repeat(4).emit("0", lambda i: lines_of(repeat(4)))


def test_extents_of_another_rank_are_refused():
    with pytest.raises(ValueError, match="rank 2"):
        lines_of(repeat(4, 4), extents=(4,))
