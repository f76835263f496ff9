"""How many blocks a multiprocessor holds, and how evenly blocks fill a device."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tilewright.spaces.cuda.occupancy import Occupancy
from tilewright.spaces.cuda.target import cuda_target

TARGET = cuda_target("sm_80")


def occupancy(**changes: Any) -> Occupancy:
    small = Occupancy(TARGET, blocks=1000, threads=32, registers=16, shared_bytes=0)
    return dataclasses.replace(small, **changes)


@pytest.mark.parametrize(
    ("changes", "resident"),
    [
        ({}, TARGET.blocks_per_multiprocessor),
        ({"threads": 128, "registers": 250}, 65536 // (128 * 256)),
        ({"shared_bytes": 40 * 1024}, 4),
        ({"threads": 1024}, 2),
        ({"threads": 1024, "registers": 255}, 1),
        ({"most_resident": 3}, 3),
    ],
)
def test_what_is_scarcest_says_how_many_blocks_are_resident(changes, resident):
    found = occupancy(**changes)
    assert found.resident == resident
    assert found.slots == resident * TARGET.multiprocessors


def test_the_busiest_multiprocessor_has_a_block_more():
    blocks = np.array([54, 108, 109, 216, 1_000_000])
    found = occupancy(blocks=blocks).quantities(chains=1)
    assert found["worker_fraction"].tolist() == [0.5, 1, 1, 1, 1]
    assert found["imbalance"][[0, 1, 3]].tolist() == [1, 1, 1]
    assert found["imbalance"][2] == pytest.approx(2 * 108 / 109)
    assert found["parallelism"].tolist() == [54, 108, 109, 216, 32 * 108]


def test_blocks_that_are_side_by_side_wait_for_memory_together():
    """So that twice as many rounds and blocks take twice as long each, up to what is resident."""
    several = TARGET.multiprocessors * np.array([1, 2, 4, 8])
    found = occupancy(blocks=several, shared_bytes=40 * 1024)
    assert found.side_by_side.tolist() == [1, 2, 4, 4]
    once = found.waits(10)
    assert once.tolist() == [once[0], once[0], once[0], 2 * once[0]]
    assert (found.waits(20) == 2 * once).all()


def test_few_warps_leave_issue_slots_idle():
    starved = occupancy(blocks=TARGET.multiprocessors, threads=np.array([32, 256, 512, 1024]))
    assert starved.starved.tolist() == [16, 2, 1, 1]
