"""Sections of suites: their values, what a latency is worth in them, and how they are written."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.scheduler.suites.objective import Objective
from tilewright.scheduler.suites.sections import slopes_of, value_of, values_of
from tilewright.scheduler.suites.suite import Member, Suite, read_suite
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload

WORKLOADS = [workload("matmul", m=m, n=8, k=8) for m in (1, 2, 3)]
WEIGHTS = ({"decode": 4.0, "prefill": 2.0}, {"decode": 1.0}, {"prefill": 3.0})
MEMBERS = [
    Member.of_sections(work, weights, "") for work, weights in zip(WORKLOADS, WEIGHTS, strict=True)
]
LIBRARY = [0.5, 0.25, 2.0]
TEXT = """
title = "phases"

[[workloads]]
operator = "matmul"
parameters = { m = 1, n = 8, k = 8 }
weight = { decode = 4, prefill = 2 }

[[workloads]]
operator = "matmul"
parameters = { m = 2, n = 8, k = 8 }
weight = { decode = 1 }
"""

seconds = st.floats(0.01, 10.0)


def test_each_section_has_a_value_and_the_suite_their_mean():
    latencies = [0.1, 0.2, 1.0]
    found = values_of(Objective.LATENCY, MEMBERS, latencies, LIBRARY)
    assert found == {"decode": pytest.approx(0.6), "prefill": pytest.approx(3.2)}
    value = value_of(Objective.LATENCY, MEMBERS, latencies, LIBRARY)
    assert value == pytest.approx(math.sqrt(0.6 * 3.2))
    assert value_of(Objective.LATENCY, MEMBERS, [0.1, 0.2, None], LIBRARY) is None
    plain = [Member(work, 2.0) for work in WORKLOADS]
    assert value_of(Objective.LATENCY, plain, latencies, LIBRARY) == pytest.approx(2.6)


@given(latencies=st.lists(seconds, min_size=3, max_size=3), place=st.integers(0, 2))
@pytest.mark.parametrize("objective", Objective)
def test_slopes_are_those_of_the_logarithm_of_the_value(objective, latencies, place):
    """Up to the factor that all tasks share, the number of sections."""
    step = 1e-4 * latencies[place]
    sides = []
    for d in (-step, step):
        moved = [*latencies]
        moved[place] += d
        sides.append(math.log(value_of(objective, MEMBERS, moved, LIBRARY)))
    sign = 1 if objective is Objective.LATENCY else -1
    slope = slopes_of(objective, MEMBERS, latencies)[place]
    assert sign * (sides[1] - sides[0]) / (2 * step) == pytest.approx(slope / 2, rel=1e-3)


def test_what_is_not_known_has_no_slope():
    assert slopes_of(Objective.LATENCY, MEMBERS, [None, 0.2, None]) == [0.0, 5.0, 0.0]


def test_a_section_is_a_suite(tmp_path):
    (tmp_path / "suite.toml").write_text(TEXT)
    suite = read_suite(tmp_path / "suite.toml")
    assert suite.sections == ("decode", "prefill")
    assert [member.weight for member in suite.members] == [6, 1]
    decode, prefill = map(suite.section, suite.sections)
    assert [member.weight for member in decode.members] == [4, 1]
    assert decode.title == "phases, decode"
    assert prefill == Suite("phases, prefill", (Member(WORKLOADS[0], 2.0),))
    with pytest.raises(InputError, match="no section 'draft'; allowed: decode, prefill"):
        suite.section("draft")
    with pytest.raises(InputError, match="allowed: none, for the suite has no sections"):
        prefill.section("prefill")


@pytest.mark.parametrize(
    ("weight", "says"),
    [
        ("{}", "weight={} is empty; allowed: a weight for each section"),
        ("{ decode = 0 }", "weight of decode=0 is out of range"),
        ('{ "a b" = 1 }', "section 'a b'; allowed: letters, digits, dots and dashes"),
        ("1", "is in no section; allowed: decode, prefill"),
    ],
)
def test_malformed_sections_are_said_in_a_line(tmp_path, weight, says):
    (tmp_path / "suite.toml").write_text(TEXT.replace("{ decode = 1 }", weight))
    with pytest.raises(InputError) as error:
        read_suite(tmp_path / "suite.toml")
    assert says in str(error.value)
    assert "\n" not in str(error.value)
