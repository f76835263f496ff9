"""What is written elsewhere before a timed call."""

from __future__ import annotations

import pytest

from tilewright.measure.cpu.cache_flush import FLUSH_RATIO, LARGE, MOST, flush_bytes
from tilewright.spaces.operators import workload


@pytest.mark.parametrize(
    "text",
    [
        "softmax r=32 c=131072",
        "swiglu r=1024 c=1024",
        "attention b=1 h=16 i=1 j=32768 d=128 kv=1",
    ],
)
def test_some_times_what_the_workload_moves(text: str) -> None:
    work = workload(text)
    assert work.least_bytes >= LARGE
    assert flush_bytes(work) == FLUSH_RATIO * work.least_bytes


def test_no_more_than_a_limit() -> None:
    assert flush_bytes(workload("softmax r=512 c=131072")) == MOST


@pytest.mark.parametrize(
    "text",
    [
        "softmax r=512 c=1024",  # arrays that caches may hold
        "matmul m=2048 n=2048 k=2048",  # arithmetic
        "attention b=1 h=12 i=2048 j=2048 d=64",
    ],
)
def test_nothing_where_it_would_not_tell(text: str) -> None:
    assert flush_bytes(workload(text)) == 0
