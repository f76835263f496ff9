"""Who may win is checked on sums of few terms: the last of many that is left out is found."""

from __future__ import annotations

import pytest

from tests.kernels import written
from tests.measure.cpu.test_tables import measured
from tilewright.measure.records.measurement import ErrorKind
from tilewright.spaces.operators import workload

TERMS = 1 << 20
"""So many that the error allowed of the usual inputs hides a term or two."""
WORK = workload(f'"y[i] = sum[j](x[i,j])" i=2 j={TERMS}')
SUMS = """
void {entry}(void *const *buffers, void *workspace, const void *runtime) {{
  const float *x = buffers[0];
  float *y = buffers[1];
  for (int i = 0; i < 2; i++) {{
    double sum = 0;
    for (int j = 0; j < TERMS - {lost}; j++) sum += x[TERMS * i + j];
    y[i] = sum;
  }}
}}
""".replace("TERMS", str(TERMS))


@pytest.mark.parametrize("final", [False, True])
def test_lost_terms_are_found(final):
    kernels = [
        written("c", f"sums{lost}", SUMS.format(entry=f"sums{lost}", lost=lost), WORK.operands)
        for lost in (0, 1, 2, 5)
    ]
    right, *wrong = measured(WORK, kernels, final=final, thorough=True)
    assert right.ok, right.error_text
    assert [m.error_kind for m in wrong] == [ErrorKind.WRONG] * 3
    assert all("other inputs 1" in m.error_text for m in wrong[:2])
