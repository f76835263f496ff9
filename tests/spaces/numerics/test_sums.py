"""Sums of products in blocks: all of them, in small parts, and interruptible."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

from tilewright.spaces.numerics import sums
from tilewright.spaces.operators import workload

SHAPES: list[dict[str, Any]] = [
    {"m": 7, "n": 5, "k": 300},
    {"m": 301, "n": 2, "k": 3, "a": "col", "c": "col"},
    {"m": 33, "n": 65, "k": 17, "dtype": "int8"},
    {"m": 1, "n": 1, "k": 1},
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("terms", "elements"), [(10**9, 10**9), (100, 10**9), (10**9, 50)])
def test_blocks_give_what_the_whole_gives(
    monkeypatch: pytest.MonkeyPatch, shape: dict[str, Any], terms: int, elements: int
) -> None:
    work = workload("matmul", **shape)
    inputs = work.make_inputs(0)
    left, right = (inputs[o.name].astype(np.float64) for o in work.matmul.factors)
    monkeypatch.setattr(sums, "BLOCK_TERMS", terms)
    monkeypatch.setattr(sums, "BLOCK_ELEMENTS", elements)
    np.testing.assert_allclose(work.matmul.contract(inputs), left @ right, rtol=1e-12, atol=1e-12)
    for block in sums.blocks(work.matmul):
        lengths = {axis: part.stop - part.start for axis, part in block.items()}
        assert prod(lengths.values()) <= terms
        assert lengths["m"] * lengths["n"] <= elements
        assert lengths["m"] * lengths["k"] <= elements


def test_work_ends_between_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    work = workload("matmul", m=16, n=16, k=16)
    monkeypatch.setattr(sums, "BLOCK_TERMS", 1024)
    calls = []

    def pause() -> None:
        calls.append(len(calls))
        if len(calls) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work.matmul.contract(work.make_inputs(0), pause)
    assert len(calls) == 3
