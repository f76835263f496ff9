from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.spaces.toy_templates import Blocks, Impossible, Lanes
from tilewright.spaces.errors import InputError
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import NO_PREFERENCE, Space
from tilewright.spaces.template import Decision, Rule


def mate(first, second, seed):
    """Children of pairs of rows."""
    random = generator(seed)
    return SPACE.complete(SPACE.mixed(first, second, random), random)


def make_space(*templates):
    return Space("a workload", "a target", [t("a workload", "a target") for t in templates])


SPACE = make_space(Blocks, Lanes)


def brute_force(*templates):
    """Every valid schedule, by trying all products with every rule on plain values."""
    found = []
    for template in templates:
        names = [decision.name for decision in template.decisions]
        for values in product(*(decision.values for decision in template.decisions)):
            point = dict(zip(names, values, strict=True))
            if all(rule.holds(point) for rule in template.rules):
                found.append(Schedule(template.name, tuple(point.items())))
    return found


VALID = brute_force(Blocks, Lanes)
seeds = st.integers(0, 2**32 - 1)


def generator(seed):
    return np.random.default_rng(seed)


def all_valid(space, population):
    return all(space.why_not(space.schedule(row)) is None for row in population)


def test_counts_agree_with_brute_force():
    assert SPACE.count() == len(VALID)


def test_enumerate_gives_each_valid_schedule_once():
    schedules = list(SPACE.enumerate())
    assert len(schedules) == len(set(schedules))
    assert set(schedules) == set(VALID)
    assert schedules == list(SPACE.enumerate())


@pytest.mark.parametrize("limit", [1, 7, 50, 10**6])
def test_blocks_are_bounded_and_complete(limit):
    blocks = list(SPACE.blocks(limit))
    largest = max(len(d.values) for t in (Blocks, Lanes) for d in t.decisions)
    assert all(0 < len(block) <= max(limit, largest) for block in blocks)
    rows = np.concatenate(blocks)
    assert len(np.unique(rows, axis=0)) == len(rows) == len(VALID)


def test_sample_reaches_every_schedule():
    sampled = {SPACE.schedule(row) for row in SPACE.sample(generator(0), 4000)}
    assert sampled == set(VALID)


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(0, 60))
def test_samples_are_valid_and_follow_the_seed(seed, count):
    population = SPACE.sample(generator(seed), count)
    assert population.shape == (count, SPACE.width)
    assert all_valid(SPACE, population)
    assert np.array_equal(population, SPACE.sample(generator(seed), count))


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_children_are_valid_and_take_after_their_parents(seed):
    first, second = SPACE.sample(generator(seed), 40), SPACE.sample(generator(seed + 1), 40)
    children = mate(first, second, seed + 2)
    assert len(children) == 40
    assert all_valid(SPACE, children)
    assert np.array_equal(children, mate(first, second, seed + 2))


def test_a_child_of_twins_is_the_twin():
    twins = SPACE.rows(VALID[:30])
    children = mate(twins, twins, 0)
    assert np.array_equal(np.unique(children, axis=0), np.unique(twins, axis=0))


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(VALID), seeds)
def test_neighbours_are_valid_distinct_and_hold_every_single_change(schedule, seed):
    row = SPACE.row(schedule)
    neighbours = SPACE.neighbours(row, generator(seed))
    assert all_valid(SPACE, neighbours)
    assert len(np.unique(neighbours, axis=0)) == len(neighbours)
    assert not (neighbours == row).all(axis=1).any()
    found = {SPACE.schedule(r) for r in neighbours}
    for name, _ in schedule.decisions:
        for value in {v for s in VALID if s.template == schedule.template for v in [s[name]]}:
            changed = tuple((n, value if n == name else v) for n, v in schedule.decisions)
            single = Schedule(schedule.template, changed)
            if single != schedule and single in SPACE:
                assert single in found


@given(st.sampled_from(VALID))
def test_rows_and_schedules_are_each_others_inverse(schedule):
    row = SPACE.row(schedule)
    assert SPACE.schedule(row) == schedule
    assert np.array_equal(SPACE.row(SPACE.schedule(row)), row)
    assert SPACE.row(Schedule.from_json(schedule.to_json())).tolist() == row.tolist()
    for _, value in SPACE.schedule(row).decisions:
        assert type(value) in (int, str, bool)


def test_decisions_in_any_order_are_put_in_that_of_their_template():
    space = make_space(Blocks)
    for schedule in space.enumerate():
        turned = schedule.decisions[::-1]
        known = Schedule(schedule.template, turned)
        assert space.ordered(known) == known
        assert space.ordered(known).decisions == schedule.decisions
        assert space.nearest(known, generator(0)).decisions == schedule.decisions
        more = Schedule(schedule.template, (("unknown", 1), *turned))
        assert space.ordered(more).decisions == (*schedule.decisions, ("unknown", 1))
    foreign = Schedule("none", (("b", 1), ("a", 2)))
    assert space.ordered(foreign).decisions == foreign.decisions


def test_complete_follows_valid_preferences_exactly():
    rows = SPACE.rows(VALID)
    assert np.array_equal(SPACE.complete(rows, generator(0)), rows)


def test_complete_takes_the_nearest_valid_value():
    wish = {"bm": 16, "bn": 16, "order": "mn", "pack": True, "stages": 1}
    row = SPACE.row(Schedule("blocks", tuple(wish.items())))
    nearest = SPACE.schedule(SPACE.complete(row[None], generator(0))[0])
    assert dict(nearest.decisions) == wish | {"bn": 8}
    kept = SPACE.schedule(SPACE.complete(row[None], generator(0), first=2)[0])
    assert dict(kept.decisions) == wish | {"bm": 8}


def test_dead_ends_are_left_by_starting_again():
    wish = np.full((50, SPACE.width), NO_PREFERENCE)
    wish[:, 0] = 1
    column = SPACE.row(
        Schedule("lanes", (("bm", 3), ("lanes", 4), ("split", 1), ("fixed", "only")))
    )
    wish[:, np.flatnonzero(column > 0)[1]] = 2  # bm = 3 has no valid completion
    result = SPACE.complete(wish, generator(0))
    assert len(result) > 40
    assert all_valid(SPACE, result)


def test_a_template_without_schedules_harms_nobody():
    space = make_space(Impossible, Lanes)
    assert space.count() == len(brute_force(Lanes))
    population = space.sample(generator(0), 200)
    assert len(population) >= 190
    assert all_valid(space, population)
    assert make_space(Impossible).count() == 0
    assert len(make_space(Impossible).sample(generator(0), 10)) == 0


def blocks(**changes):
    values = {"bm": 4, "bn": 4, "order": "mn", "pack": False, "stages": 1} | changes
    return Schedule("blocks", tuple(values.items()))


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (
            Schedule("nonsense", ()),
            "template 'nonsense' is not in this space; known: blocks, lanes",
        ),
        (blocks(bm=5), "bm=5 is not a value of that decision; allowed: 1, 2, 4, 8, 16"),
        (blocks(pack=0), "pack=0 is not a value of that decision; allowed: False, True"),
        (blocks(bm=True), "bm=True is not a value"),
        (blocks(extra=1), "decision 'extra' is not one of blocks"),
        (Schedule("blocks", (("bm", 4),)), "decision 'bn' is missing"),
        (blocks(bm=16, bn=16), "registers: a tile of 16x16 needs 256 registers of 128"),
        (blocks(order="nm"), "packing: order nm needs packing"),
        (blocks(bm=2, order="nm"), "packing: order nm needs packing; even: bm must not be 2"),
    ],
)
def test_why_not_says_it_in_words(schedule, words):
    assert words in (SPACE.why_not(schedule) or "")
    assert schedule not in SPACE
    with pytest.raises(InputError) as error:
        SPACE.lower(schedule)
    assert words in str(error.value)


def test_why_not_is_silent_about_every_valid_schedule():
    assert all(schedule in SPACE for schedule in VALID)
    assert SPACE.lower(VALID[0]) == VALID[0].key


def test_row_of_a_foreign_schedule_is_refused():
    with pytest.raises(InputError, match="bm=5"):
        SPACE.row(blocks(bm=5))
    assert SPACE.rows([]).shape == (0, SPACE.width)


def test_quantities_come_from_each_rows_own_template():
    population = SPACE.rows(VALID)
    quantities = SPACE.quantities(population)
    for i, schedule in enumerate(VALID):
        if schedule.template == "blocks":
            assert quantities["flops"][i] == schedule["bm"] * schedule["bn"]
            assert np.isnan(quantities["instructions"][i])
        else:
            assert quantities["instructions"][i] == schedule["split"]
            assert np.isnan(quantities["flops"][i])


def test_decision_columns_are_numbers_where_active():
    columns = SPACE.decision_columns(SPACE.rows(VALID))
    for i, schedule in enumerate(VALID):
        active = schedule.template == "blocks"
        assert np.isnan(columns["blocks.bm"][i]) != active
        assert np.isnan(columns["lanes.bm"][i]) == active
        if active:
            assert columns["blocks.bm"][i] == schedule["bm"]
            assert columns["blocks.order"][i] == ("mn", "nm").index(schedule["order"])


def test_version_names_templates_and_their_versions():
    assert SPACE.versions == {"blocks.3", "lanes.1"}
    found = {s.template: SPACE.version_of(s) for s in SPACE.enumerate()}
    assert found == {"blocks": "blocks.3", "lanes": "lanes.1"}


def test_malformed_templates_are_refused():
    class Mixed(Blocks):
        decisions = (Decision("x", (1, "two")),)
        rules = ()

    class Astray(Blocks):
        rules = (Rule("astray", ("nowhere",), lambda c: True, lambda v: ""),)

    class Unread(Blocks):
        rules = (Rule("unread", (), lambda c: False, lambda v: ""),)

    with pytest.raises(ValueError, match="more than one type"):
        make_space(Mixed)
    with pytest.raises(ValueError, match="rule astray"):
        make_space(Astray)
    with pytest.raises(ValueError, match="rule unread"):
        make_space(Unread)
    with pytest.raises(ValueError, match="two templates"):
        make_space(Blocks, Blocks)
    with pytest.raises(ValueError, match="at least one template"):
        make_space()
    with pytest.raises(ValueError, match="distinct"):
        Decision("x", (1, 1))


def test_the_nearest_of_a_schedule_in_the_space_is_itself():
    for schedule in VALID[::7]:
        assert SPACE.nearest(schedule, generator(0)) == schedule


def test_the_nearest_keeps_what_the_rules_and_values_allow():
    broken = {"bm": 2, "bn": 9, "order": "nm", "pack": True, "stages": 1, "unknown": 5}
    near = SPACE.nearest(Schedule("blocks", tuple(broken.items())), generator(0))
    assert near is not None
    assert near in SPACE
    assert near["bm"] in (1, 4)
    assert near["bn"] == 8
    assert (near["order"], near["pack"], near["stages"]) == ("nm", True, 1)
    assert SPACE.nearest(Schedule("magic", ()), generator(0)) is None


@given(seeds)
def test_completions_are_the_valid_schedules_with_what_is_given(seed):
    whole = VALID[seed % len(VALID)]
    kept = whole.decisions[:: 1 + seed % 3]
    rows = SPACE.completions(Schedule(whole.template, kept), generator(seed), 400)
    found = {SPACE.schedule(row) for row in rows}
    wanted = {v for v in VALID if v.template == whole.template and set(kept) <= set(v.decisions)}
    assert found <= wanted
    assert len(found) >= min(len(wanted), 10)


@pytest.mark.parametrize(
    ("kept", "complaint"),
    [
        ({"bm": 3}, "bm=3 is not a value of that decision; allowed: 1, 2, 4, 8, 16"),
        ({"bk": 4}, "decision 'bk' is not one of blocks"),
    ],
)
def test_there_are_no_completions_of_unknown_decisions(kept, complaint):
    with pytest.raises(InputError, match=complaint):
        SPACE.completions(Schedule("blocks", tuple(kept.items())), generator(0), 5)


def test_there_are_no_completions_where_rules_forbid_what_is_given():
    for kept in ({"bm": 16, "bn": 16}, {"bm": 2}, {"order": "nm", "pack": False}):
        assert not len(SPACE.completions(Schedule("blocks", tuple(kept.items())), generator(0), 50))


@pytest.mark.parametrize("value", [10**30, -(10**30)])
def test_the_nearest_of_a_number_beyond_all_measure(value):
    near = SPACE.nearest(Schedule("blocks", (("bn", value),)), generator(0))
    assert near is not None
    assert near in SPACE
