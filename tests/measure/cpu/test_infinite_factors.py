"""What all terms of a sum have in common multiplies each of them: infinite, it gives NaN."""

from __future__ import annotations

from tests.kernels import written
from tests.measure.cpu.test_tables import measured
from tilewright.measure.records.measurement import ErrorKind
from tilewright.spaces.operators import workload

WORK = workload('"y[i] = sum[k](a[i,k] * s[i])" i=40 k=50')
SUMS = """
void {entry}(void *const *buffers, void *workspace, const void *runtime) {{
  const float *a = buffers[0], *s = buffers[1];
  float *y = buffers[2];
  for (int i = 0; i < 40; i++) {{
    double sum = 0;
    for (int k = 0; k < 50; k++) sum += (double)a[50 * i + k]{term};
    y[i] = sum{last};
  }}
}}
"""


def test_a_factor_that_leaves_a_sum_is_found():
    kernels = [
        written("c", f"sums{n}", SUMS.format(entry=f"sums{n}", term=t, last=e), WORK.operands)
        for n, (t, e) in enumerate(((" * s[i]", ""), ("", " * s[i]")))
    ]
    right, wrong = measured(WORK, kernels, final=True, thorough=True)
    assert right.ok, right.error_text
    assert wrong.error_kind is ErrorKind.WRONG
