"""Sealed suites: the keys stay, and nothing else does; records are matched by key."""

import pytest

from tilewright.scheduler.suites.sealing import plain, sealed
from tilewright.scheduler.suites.suite import Member, Suite, read_suite
from tilewright.scheduler.suites.writing import text_of
from tilewright.scheduler.testing.landscape import MACHINE
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload

SECRET = [
    workload("matmul m=16 n=32 k=24 epilogue='relu(x + secret[n])'"),
    workload("score[a] = sum[b](tokens[a, b] * tokens[a, b])", a=8, b=64),
    workload("softmax r=8 c=16"),
]
SUITE = Suite(
    "the model",
    tuple(Member.of_sections(work, {"decode": 3.0}, "layer") for work in SECRET),
)


@pytest.mark.parametrize("work", SECRET)
def test_a_plain_workload_is_the_same_without_its_names(work):
    found = plain(work)
    assert found.key == work.key
    text = text_of(Suite("", (Member(found),)))
    assert not any(word in text for word in ("secret", "tokens", "score", "softmax"))


@pytest.mark.parametrize("seed", range(4))
def test_a_sealed_suite_has_the_keys_and_decoys_alone(seed, tmp_path):
    found = sealed(SUITE, 5, MACHINE, seed)
    (tmp_path / "sealed.toml").write_text(text_of(found))
    again = read_suite(tmp_path / "sealed.toml")
    keys = [member.workload.key for member in again.members]
    assert keys == [member.workload.key for member in found.members]
    assert len(keys) == 8
    assert {work.key for work in SECRET} < set(keys)
    assert again.sections == ()
    assert {(member.weight, member.name) for member in again.members} == {(1.0, "")}
    assert again.title != SUITE.title


def test_the_order_tells_nothing():
    orders = {
        tuple(member.workload.key for member in sealed(SUITE, 0, MACHINE, seed).members)
        for seed in range(20)
    }
    assert len(orders) > 1
    drawn = sealed(SUITE, 3, MACHINE, 7).members
    assert drawn == sealed(SUITE, 3, MACHINE, 7).members


def test_too_many_decoys_are_refused():
    one = Suite("one", (Member(workload("y[i] = exp(x[i])", i=4)),))
    with pytest.raises(InputError, match=r"only \d+ decoys can be made of the suite, not 100"):
        sealed(one, 100, MACHINE, 0)
