"""Profiles: what they say of sizes, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.scheduler.dispatch.profile import SAMPLES, as_profile
from tilewright.spaces.errors import InputError


def test_ranges_are_in_order_and_shares_add_up_to_one():
    profile = as_profile("9-256:3, 1:3,2-8:4")
    assert str(profile) == "1:0.3,2-8:0.4,9-256:0.3"
    assert (profile.first, profile.last) == (1, 256)
    assert as_profile(str(profile)) == profile


def test_gaps_are_allowed_and_count_for_nothing():
    assert as_profile("4-5:1,9:1").weights == {4: 0.25, 5: 0.25, 9: 0.5}


@given(st.integers(1, 5000), st.integers(0, 5000))
def test_sizes_of_a_range_have_its_share_together(first, more):
    (range_,) = as_profile(f"{first}-{first + more}:2").ranges
    weights = as_profile(f"{first}-{first + more}:2").weights
    assert sum(weights.values()) == pytest.approx(1)
    assert len(weights) == len(range_.samples) <= SAMPLES
    assert first <= min(weights) <= max(weights) <= first + more


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "has no sizes"),
        ("1-8:.5,8-9:.5", "1-8:0.5 and 8-9:0.5 overlap"),
        ("1:.5,1:.5", "overlap"),
        ("8-1:1", "'8-1:1' is no range"),
        ("1-8", "'1-8' is no range"),
        ("0-8:1", "'0' of '0-8:1' is no size; allowed: whole numbers from 1 to 65536"),
        ("1-99999:1", "'99999' of"),
        ("1-2-3:1", "is no size"),
        ("²:1", "is no size"),
        ("x:1", "'x' of 'x:1' is no size"),
        ("1:x", "'x' is no share"),
        ("1:", "'' is no share"),
        ("1:0", "the share of 1=0.0 is out of range"),
        ("1:-1", "finite numbers above 0"),
        ("1:nan", "finite numbers above 0"),
        ("1:inf", "finite numbers above 0"),
        (5, "profile=5 has no sizes"),
    ],
)
def test_malformed_profiles(text, says):
    with pytest.raises(InputError) as refused:
        as_profile(text)
    assert says in str(refused.value)
    assert len(str(refused.value)) <= 200
