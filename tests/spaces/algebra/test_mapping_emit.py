"""The C of a mapping does what the mapping means, with as few tests as it can."""

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from tests.spaces.algebra.mappings import mappings
from tests.spaces.c_program import run_c
from tests.spaces.indices import value_of
from tilewright.spaces.algebra.index import index
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.algebra.mapping_emit import only_task

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
    with pytest.raises(NameError, match="the prefix 'i'"):
        repeat(4).emit("0", lambda i: lines_of(repeat(4)))


def test_extents_of_another_rank_are_refused():
    with pytest.raises(ValueError, match="rank 2"):
        lines_of(repeat(4, 4), extents=(4,))


def test_the_only_task_of_a_worker_is_what_the_mapping_gives_it():
    mapping = spatial(3, 4) * spatial(2, 5)
    row, column = only_task(mapping, index("w", mapping.num_workers))
    for worker in range(mapping.num_workers):
        task = tuple(value_of(place, {"w": worker}) for place in (row, column))
        assert [task] == list(mapping.tasks(worker))
    with pytest.raises(ValueError, match="several tasks a worker"):
        only_task(spatial(3) * repeat(2), index("w", 3))
