"""Long sums on a CPU are as near as NumPy's, whichever schedule wins."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from tests.kernels import planted
from tests.spaces.cpu.native import compile_kernels, complaint
from tests.spaces.cpu.written import TARGET, results
from tests.spaces.long_sums import REDUCTIONS, ULP, Draw, ErrorBound, drawn, equal, far, offset
from tilewright.measure.drawing.draw import one_draw
from tilewright.measure.drawing.edges import with_edges
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for


def check(name: str, draw: Draw, terms: int, count: int, folder: Path) -> None:
    """Kernels of random schedules are off by as much as NumPy is."""
    reduction = REDUCTIONS[name]
    w = workload(reduction.text, **reduction.shape(terms))
    inputs = drawn(w.program, draw)
    bound = ErrorBound.of(reduction, w.program, inputs)
    found = results(w, inputs, count, folder)
    wrong = {schedule: bound.complaint(y) for schedule, y in found.items()}
    assert not any(wrong.values()), {s: text for s, text in wrong.items() if text}


SHORT = [
    ("sum of rows", equal, 10**6),
    ("mean of channels", equal, 250_000),
    ("dot", equal, 10**6),
    ("variance of rows", far, 1024),
    ("variance of columns", far, 1024),
    ("variance of rows", offset, 10**5),
]
EVERY = [
    (name, draw, terms)
    for terms in (10**3, 10**4, 10**5, 10**6, 10**7)
    for name, reduction in REDUCTIONS.items()
    for draw in reduction.draws
]


@pytest.mark.parametrize(("name", "draw", "terms"), SHORT)
def test_long_sums_are_as_near_as_those_of_numpy(
    name: str, draw: Draw, terms: int, tmp_path: Path
) -> None:
    check(name, draw, terms, 5, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "draw", "terms"), EVERY)
def test_every_reduction_is_as_near_as_numpys(
    name: str, draw: Draw, terms: int, tmp_path: Path
) -> None:
    check(name, draw, terms, 20, tmp_path)


@pytest.mark.parametrize(
    ("text", "extents", "template"),
    [
        ("y[r] = sum[c](x[r, c])", {"r": 3, "c": 400_000}, "rows"),
        ("y[c] = sum[r](x[r, c])", {"r": 30_000, "c": 20}, "kept"),
    ],
)
def test_edge_inputs_show_a_kernel_that_adds_up_all_in_one(
    text: str, extents: Mapping[str, int], template: str, tmp_path: Path
) -> None:
    w = workload(text, **extents)
    space = space_for(w, TARGET)
    rows = space.sample(np.random.default_rng(0), 100)
    schedule = next(s for s in map(space.schedule, rows) if s.template == template)
    right = space.lower(schedule)
    naive = planted(right, r"% \d+ == 0", "% (1u << 31) == 0", entry="naive", count=0)
    library = compile_kernels([right, naive], TARGET, tmp_path)
    draws = list(with_edges(one_draw(w, 0)))

    def complaints(kernel: Kernel) -> list[str]:
        return [complaint(kernel, library, w, 0, dict(draw.inputs)) for draw in draws]

    assert not any(complaints(right))
    assert any(complaints(naive))


def test_no_factor_leaves_a_sum_that_overflows_without_it(tmp_path: Path) -> None:
    w = workload("s[r] = max[c](z[r, c]); y[r] = sum[c](x[r, c] * s[r])", r=5, c=64)
    inputs = {"x": np.full((5, 64), 1e38, np.float32), "z": np.full((5, 64), 1e-30, np.float32)}
    for found in results(w, inputs, 8, tmp_path).values():
        np.testing.assert_allclose(found, 6.4e9, rtol=1e-6)


@pytest.mark.parametrize(("m", "n"), [(2, 16), (16, 1), (24, 48)])
def test_long_products_are_added_up_in_blocks(m: int, n: int, tmp_path: Path) -> None:
    terms = 200_000
    w = workload("C[m, n] = sum[k](A[m, k] * B[k, n])", m=m, n=n, k=terms)
    inputs = {"A": np.full((m, terms), 0.1, np.float32), "B": np.ones((terms, n), np.float32)}
    exact = terms * float(np.float32(0.1))
    for schedule, found in results(w, inputs, 6, tmp_path).items():
        assert np.max(np.abs(found / exact - 1)) < 100 * ULP, schedule


@pytest.mark.parametrize("text", ["sum[c](x[r,c])", "sum[c](x[c,r])", "sum[c](x[r,c] * w[c])"])
def test_a_long_sum_that_becomes_infinite_stays_so(text: str, tmp_path: Path) -> None:
    w = workload(f"y[r] = {text}", r=4, c=40_000)
    signs = np.array([1, -1, 1, -1], np.float32) * np.float32(1e36)
    x = np.broadcast_to(signs if "[c,r]" in text else signs[:, None], w.inputs[0].shape)
    ones = (np.ones(array.shape, np.float32) for array in w.inputs[1:])
    given = dict(zip((a.name for a in w.inputs), (np.ascontiguousarray(x), *ones), strict=True))
    for schedule, found in results(w, given, 4, tmp_path).items():
        assert found.ravel().tolist() == [np.inf, -np.inf, np.inf, -np.inf], schedule
