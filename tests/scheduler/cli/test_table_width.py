"""Tables that fit the width of a terminal."""

from __future__ import annotations

import pytest

from tilewright.scheduler.cli.output import aligned
from tilewright.scheduler.cli.table_width import fit_columns

COLUMNS = ("~workload", "~~target", "?seed", "#best")
ROWS = [
    ("matmul m=128 n=128 k=128 b=col", "cpu AMD EPYC (family 25 model 17), avx512", "7", "3.6 us"),
    ("softmax r=1 c=2", "cpu", "11", "10 us"),
]


@pytest.mark.parametrize("width", [200, 80, 60, 40, 38])
def test_a_table_fits_its_width(width: int) -> None:
    lines = list(aligned(*fit_columns(COLUMNS, ROWS, width)))
    assert max(map(len, lines)) <= width
    assert all("us" in line for line in lines[1:]), "figures are never cut"
    assert ("seed" in lines[0]) is (width >= 40)


def test_the_target_is_cut_at_its_end_before_the_workload_loses_its_middle() -> None:
    _, ((workload, target, *_), _) = fit_columns(COLUMNS, ROWS, 60)
    assert (workload, target) == (ROWS[0][0], "cpu AMD EPY...")
    _, ((workload, target, *_), _) = fit_columns(COLUMNS, ROWS, 50)
    assert (workload, target) == ("matmul m=1...128 b=col", "cpu AMD E...")


def test_a_wide_terminal_shows_all() -> None:
    assert fit_columns(COLUMNS, ROWS, 200) == (list(COLUMNS), [list(row) for row in ROWS])


def test_what_cannot_fit_keeps_its_least() -> None:
    _, ((workload, target, best), _) = fit_columns(COLUMNS, ROWS, 10)
    assert (len(workload), len(target), best) == (12, 12, "3.6 us")
