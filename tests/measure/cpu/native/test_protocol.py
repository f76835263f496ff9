"""The decisions of the timing protocol, on times that are given."""

from __future__ import annotations

import ctypes
from functools import cache
from math import inf, nan
from pathlib import Path

import pytest

from tilewright.measure.cpu import binaries
from tilewright.measure.cpu.compilation import SHARED
from tilewright.measure.timing import TimingProtocol

PROTOCOL = TimingProtocol(
    slow_factor=3.0,
    cold_seconds=0.5e-3,
    recheck_seconds=10e-3,
    sample_seconds=1e-3,
    budget=12e-3,
    samples=5,
    contender_factor=1.1,
    contender_samples=3,
    drift=0.1,
)
NUMBERS = ("slow_factor", "cold_seconds", "recheck_seconds", "sample_seconds", "budget")


class Protocol(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_double) for name in NUMBERS),
        ("samples", ctypes.c_int),
        ("contender_factor", ctypes.c_double),
        ("contender_samples", ctypes.c_int),
        ("drift", ctypes.c_double),
    )


class Tally(ctypes.Structure):
    _fields_ = (
        ("samples", ctypes.c_int),
        ("fastest", ctypes.c_double),
        ("spent", ctypes.c_double),
    )


class References(ctypes.Structure):
    _fields_ = (("count", ctypes.c_int), ("sorted", ctypes.c_double * 4096))


@cache
def library() -> ctypes.CDLL:
    folder = Path(binaries.__file__).parent / "native"
    sources = {name: (folder / name).read_text() for name in ("protocol.c", "protocol.h")}
    return binaries.Build("protocol", sources, SHARED).load(ctypes.CDLL)


NUMBERED = Protocol(**{name: getattr(PROTOCOL, name) for name, *_ in Protocol._fields_})


def decide(name: str, *arguments: object) -> int:
    kinds = {float: ctypes.c_double, int: ctypes.c_int}
    given = [kinds[type(a)](a) if type(a) in kinds else a for a in arguments]
    return getattr(library(), name)(*given)


def wants(samples: int, fastest: float, spent: float, best: float = 1e-3) -> bool:
    tally = ctypes.byref(Tally(samples, fastest, spent))
    return bool(decide("wants_sample", ctypes.byref(NUMBERED), tally, best))


@pytest.mark.parametrize(("first", "second"), [(1e-6, 1), (10e-3, 1), (10.1e-3, 0)])
def test_a_short_call_is_checked_twice(first, second):
    assert decide("wants_second_call", ctypes.byref(NUMBERED), first) == second


@pytest.mark.parametrize(
    ("seconds", "slow"),
    [
        ([3.4e-3], 0),  # a cold start is allowed for ...
        ([3.6e-3], 1),
        ([3.4e-3, 2.9e-3], 0),
        ([2.9e-3, 3.4e-3], 0),
        ([3.4e-3, 3.1e-3], 1),  # ... once
    ],
)
def test_a_candidate_is_slow_by_its_fastest_call(seconds, slow):
    times = (ctypes.c_double * 2)(*seconds)
    assert decide("is_slow", ctypes.byref(NUMBERED), 1e-3, len(seconds), times) == slow


@pytest.mark.parametrize(("seconds", "counts"), [(9.9e-3, 0), (10.1e-3, 1), (1.0, 1)])
def test_a_long_checked_call_is_a_sample(seconds, counts):
    assert decide("is_sample", ctypes.byref(NUMBERED), seconds) == counts


@pytest.mark.parametrize(
    ("fastest", "calls"),
    [(1.0, 1), (1e-3, 1), (0.9e-3, 2), (1e-5, 100), (1e-7, 10_000), (1e-12, 100_000), (inf, 1)],
)
def test_a_sample_spans_at_least_its_time(fastest, calls):
    tally = ctypes.byref(Tally(0, fastest, 0.0))
    assert decide("calls_of_sample", ctypes.byref(NUMBERED), tally) == calls


def test_a_short_kernel_is_sampled_as_often_as_allowed():
    assert wants(0, 1e-5, 0.0)
    assert wants(4, 1e-5, 4e-3)
    assert not wants(5, 1e-5, 5e-3)


def test_the_budget_ends_sampling_but_for_contenders_and_the_first_sample():
    assert wants(3, 1e-5, 10.9e-3)
    assert not wants(3, 1e-5, 11.1e-3, best=1e-6)
    assert wants(0, 1e-5, 1.0, best=1e-6)
    assert wants(2, 1e-5, 1.0, best=1e-5)
    assert wants(2, 1.09e-5, 1.0, best=1e-5)
    assert not wants(2, 1.11e-5, 1.0, best=1e-5)
    assert not wants(3, 1e-5, 1.0, best=1e-5)


def test_a_long_kernel_is_sampled_within_its_budget():
    assert wants(4, 1e-3, 4e-3)
    assert wants(1, 5e-3, 5e-3, best=1e-6)
    assert not wants(1, 5e-3, 8e-3, best=1e-6)


def disturbed(times: list[float]) -> list[bool]:
    known = ctypes.byref(References())
    return [bool(decide("is_disturbed", ctypes.byref(NUMBERED), known, time)) for time in times]


def test_a_round_is_disturbed_that_is_far_above_the_median_of_all():
    told = disturbed([1.0, 1.0, 1.09, 1.21, 0.5, 2.0, 1.0])
    assert [round for round, is_one in enumerate(told) if is_one] == [3, 5]


def test_a_machine_that_is_slow_from_now_on_is_no_disturbance_in_the_end():
    assert disturbed([1.0] * 4 + [1.5] * 8)[-1] is False


@pytest.mark.parametrize("time", [0.9, 0.99, 1.0, 1.01])
def test_even_rounds_are_not_disturbed(time):
    assert not any(disturbed([1.0, time, 1.0, time, 1.0, time]))


@pytest.mark.parametrize(
    ("wall", "cpu", "hung"),
    [(1.9, 1.9, 0), (2.1, 1.1, 1), (2.1, 0.9, 0), (7.9, 0.9, 0), (8.1, 0.0, 1)],
)
def test_a_starved_process_is_given_more_time(wall, cpu, hung):
    assert decide("is_hung", 2.0, wall, cpu) == hung


@pytest.mark.parametrize(
    ("wall", "claimed", "untimed", "seen", "believed"),
    [
        (0, 1e-3, 1e-3, 2.1e-3, 1),
        (0, 1e-3, 0.0, 1e-3, 1),
        (0, 3.1e-3, 0.0, 2e-3, 0),  # more than there was
        (0, 8e173, inf, 1e-3, 0),
        (0, -1.0, inf, 1e-3, 0),
        (0, 0.0, inf, 1e-3, 0),
        (0, nan, inf, 1e-3, 0),
        (0, inf, inf, inf, 0),
        (0, 1e-3, 1e-3, 20e-3, 1),  # a call that was cold
        (0, 1e-3, 1e-3, 50e-3, 0),  # where is the rest?
        (0, 1e-6, inf, 50.0, 1),  # checking took it
        (1, 1e-3, 1e-3, 50e-3, 1),  # another process did, by the wall clock
        (1, 52e-3, 1e-3, 50e-3, 0),
    ],
)
def test_times_are_believed_that_were_seen(wall, claimed, untimed, seen, believed):
    assert decide("is_believable", wall, claimed, untimed, seen) == believed
