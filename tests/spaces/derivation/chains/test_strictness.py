"""Which corrections a strict chain has, and that moments of rows are of shifted elements."""

from __future__ import annotations

import pytest

from tests.spaces.chained_programs import form
from tilewright.spaces.cpu.target import detect_cpu
from tilewright.spaces.derivation.chains.chain import is_weak
from tilewright.spaces.derivation.chains.shifting import shifted
from tilewright.spaces.derivation.rows.view import rows_of
from tilewright.spaces.language import program
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.registry import Served, serving
from tilewright.spaces.workloads.served import workload_of

EXTENTS = {"r": 6, "c": 50}


@pytest.mark.parametrize(
    ("text", "weak", "online"),
    [
        ("y[r, c] = softmax[c](x[r, c])", False, 1),
        ("y[r] = sum[c](softmax[c](x[r, c]) * z[c])", False, 1),
        ("y[r] = var[c](x[r, c])", True, 1),  # of shifted elements, rows are strict
        ("y[r] = var[c](exp(x[r, c] - max[c](x[r, c])))", False, 2),
        ("s[r] = max[c](z[r, c]); y[r] = sum[c](x[r, c] * s[r])", True, 2),
        ("s[r] = sum[c](z[r, c]); y[r] = sum[c](exp(x[r, c]) * z[r, c] / s[r])", True, 2),
    ],
)
def test_corrections_that_inputs_can_spoil_are_not_strict(text, weak, online):
    made = program(text, **EXTENTS)
    assert is_weak(made) == weak
    assert len(rows_of(made).online) == online


def test_a_variance_is_of_elements_less_one_that_is_no_outlier():
    made = program(
        "m[r] = mean[c](x[r, c]); y[r] = sum[c]((x[r, c] - m[r]) * (x[r, c] - m[r])) / 50",
        **EXTENTS,
    )
    texts = [str(stage) for stage in shifted(made).stages]
    (about,) = (text for text in texts if text.startswith("m_sum_about"))
    assert all(f"x[r, {place}]" in about for place in (0, 25, 49)), about
    plain = program("y[r] = sum[c](x[r, c] - w[c])", **EXTENTS)
    assert shifted(plain) is plain


def test_a_weak_chain_is_no_template_of_strict_numerics():
    work = workload_of(form("moments of a product"))
    names = {mode: _names(serving(work, detect_cpu(), mode)) for mode in Numerics}
    assert "chained" in names[Numerics.FAST]
    assert "chained" not in names[Numerics.STRICT]


def _names(found: Served | str) -> list[str]:
    return [] if isinstance(found, str) else [template.name for template in found.templates]
