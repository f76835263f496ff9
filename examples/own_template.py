"""Add a template of your own: running sums along rows, in C, with two decisions and a rule.

A template is a family of kernels. Tilewright searches its space, holds each kernel to float64,
and times it, as it does with its own templates. A contract test to inherit is in
``tilewright.spaces.testing.template``.
"""

import os

import numpy as np

from tilewright import best, detect_target, tune, workload
from tilewright.scheduler.verification import measure
from tilewright.spaces.cpu.abi import ABI_PRELUDE
from tilewright.spaces.kernel import Call, Kernel, Source, arguments
from tilewright.spaces.quantities import QUANTITIES
from tilewright.spaces.registry import register_template, space_for
from tilewright.spaces.template import Decision, Rule, Template

TRIALS = int(os.environ.get("TILEWRIGHT_EXAMPLE_TRIALS", "16"))
TEXT = "where k <= j; y[i, j] = sum[k](x[i, k])"


class RunningSums(Template):
    """Adds along several rows at once, for the additions of one row wait for one another."""

    name = "running_sums"
    decisions = (Decision("rows", (1, 2, 4, 8)), Decision("unroll", (1, 2, 4)))
    rules = (
        Rule(
            "registers",
            reads=("rows", "unroll"),
            holds=lambda c: c["rows"] * c["unroll"] <= 16,
            explain=lambda v: f"{v['rows']} rows x {v['unroll']} columns exceed 16 registers",
        ),
    )

    @classmethod
    def refuses(cls, work, target):
        """Say why this template does not serve a workload; None if it does."""
        shape = work.outputs[0].shape
        if len(shape) != 2 or shape[0] < 8:
            return "needs a matrix of at least 8 rows"
        running_sums = workload(TEXT, i=shape[0], j=shape[1], k=shape[1])
        return None if work == running_sums else "needs running sums along rows"

    def quantities(self, columns):
        """Return the quantities that a cost model learns from; 1 for those alike in all
        schedules."""
        alike = {name: np.ones(len(columns["rows"])) for name in QUANTITIES}
        traffic = np.full(len(columns["rows"]), float(self.workload.least_bytes))
        return alike | {"main_bytes": traffic, "independent_chains": columns["rows"]}

    def lower(self, schedule):
        """Return the kernel of one schedule."""
        (i, j), rows = self.workload.outputs[0].shape, schedule["rows"]
        body = f"""
void {self.entry(schedule)}(void *const *buffers, void *workspace, const tw_runtime *runtime) {{
  const float *restrict x = buffers[0]; float *restrict y = buffers[1];
  for (long block = 0; block < {i}; block += {rows}) {{
    long first = tw_least(block, {i} - {rows});  // the last block may repeat some rows
    double sums[{rows}] = {{0}};
    #pragma GCC unroll {schedule["unroll"]}
    for (long j = 0; j < {j}; j++)
      for (long r = 0; r < {rows}; r++)
        y[(first + r) * {j} + j] = sums[r] += x[(first + r) * {j} + j];
  }}
}}"""
        given = arguments(self.workload.inputs, self.workload.outputs)
        return Kernel(Source("c", ABI_PRELUDE, body), Call(self.entry(schedule), given))


register_template("cpu", RunningSums)
work, target = workload(TEXT, i=60, j=200, k=200), detect_target("cpu")
space = space_for(work, target)
schedules = list(space.enumerate())
print("templates:", *space.templates, "- valid schedules:", len(schedules))
assert all(verdict.right for verdict in measure(space, schedules[:4]))

tune(work, target, "tuning.db", trials=TRIALS, seconds=60)
function = best(work, target, "tuning.db")
x = np.random.default_rng(0).standard_normal((60, 200), dtype=np.float32)
assert np.allclose(function(x), np.cumsum(x, axis=1), atol=1e-4)
print(function.provenance, function.schedule)
