"""A template of one's own is one folder, and nothing else: two of them, for different programs."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from tilewright.scheduler.verification import measure
from tilewright.spaces import registry
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import register_template, space_for
from tilewright.spaces.space import Space
from tilewright.spaces.target import detect_target
from tilewright.spaces.testing.template import checked_quantities, silent_rules

HEAD = '''\
"""{about}"""

import numpy as np

from tilewright.spaces.cpu.abi import ABI_PRELUDE
from tilewright.spaces.kernel import Call, Kernel, Source, arguments
from tilewright.spaces.quantities import QUANTITIES
from tilewright.spaces.template import Decision, Rule, Template
from tilewright.spaces.workloads.workload import Workload
from tilewright.spaces.workloads.product import product_of
from {folder}.code import body


class Own(Template):
    """{about}"""

    name = "{folder}"
    decisions = (Decision("backwards", (False, True)), Decision("unroll", (1, 2, 4)))
    rules = (
        Rule(
            "unroll",
            ("backwards", "unroll"),
            lambda c: (c["unroll"] == 1) | np.logical_not(c["backwards"]),
            lambda c: f"a loop that runs backwards is not unrolled {{c['unroll']}} times",
        ),
    )

    @classmethod
    def refuses(cls, workload, target):
        {refuses}

    def quantities(self, columns):
        found = {{name: np.ones(len(columns["unroll"])) for name in QUANTITIES}}
        return found | {{"main_bytes": found["main_bytes"] * self.workload.least_bytes}}

    def lower(self, schedule):
        entry, given = self.entry(schedule), arguments(self.workload.inputs, self.workload.outputs)
        text = "void %s(void *const *buffers, void *workspace, const tw_runtime *runtime) {{%s}}"
        source = text % (entry, body(self.workload, schedule))
        return Kernel(Source("c", ABI_PRELUDE, source), Call(entry, given))
'''
LOOP = '''\
def loop(axis, extent, schedule):
    """A loop over an axis."""
    down = f"for (int {axis} = {extent} - 1; {axis} >= 0; {axis}--)"
    up = f"for (int {axis} = 0; {axis} < {extent}; {axis}++)"
    unroll = f"_Pragma(\\"GCC unroll {schedule['unroll']}\\")"
    return down if schedule["backwards"] else f"{unroll} {up}"


'''
PRODUCTS = '''\
def body(work, schedule):
    """Products, element by element."""
    m, n, k = work.extents.values()
    return f"""
      const float *a = buffers[0], *b = buffers[1]; float *c = buffers[2];
      for (int i = 0; i < {m}; i++) {loop("j", n, schedule)} {{
        float sum = 0;
        for (int l = 0; l < {k}; l++) sum += a[i * {k} + l] * b[l * {n} + j];
        c[i * {n} + j] = sum;
      }}"""
'''
GREATEST = '''\
def body(work, schedule):
    """The greatest of each row."""
    rows, columns = work.inputs[0].shape
    return f"""
      const float *x = buffers[0]; float *y = buffers[1];
      for (int i = 0; i < {rows}; i++) {{
        y[i] = x[i * {columns}];
        {loop("j", columns, schedule)} {{
          const float v = x[i * {columns} + j];
          if (v > y[i] || v != v) y[i] = v;  // one that is no number stays
        }}
      }}"""
'''
FOLDERS = {
    "own_products": (
        "Products of matrices by three loops.",
        "found = product_of(workload)\n        return found if isinstance(found, str) else None",
        LOOP + PRODUCTS,
        "matmul m=5 n=7 k=3",
    ),
    "own_greatest": (
        "The greatest of each row, and nothing else.",
        "one = str(workload.program.stages[-1])\n"
        '        only = "y[i] = max[j](x[i, j])"\n'
        '        return None if one == only else "needs the greatest of each row"',
        LOOP + GREATEST,
        "y[i] = max[j](x[i, j])",
    ),
}


@pytest.fixture(params=FOLDERS)
def added(request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The template of a folder that was not there before, and a workload for it."""
    about, refuses, code, text = FOLDERS[request.param]
    folder = tmp_path / request.param
    folder.mkdir()
    (folder / "__init__.py").write_text(f'"""{about}"""\n')
    (folder / "template.py").write_text(
        HEAD.format(about=about, folder=request.param, refuses=refuses)
    )
    (folder / "code.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_REGISTERED", {})
    template = import_module(f"{request.param}.template").Own
    extents = {} if text.startswith("matmul") else {"i": 6, "j": 9}
    yield template, workload(text, **extents)
    for name in [name for name in sys.modules if name.split(".")[0] == request.param]:
        del sys.modules[name]


def test_a_new_template_takes_part_in_spaces_and_its_kernels_are_right(added):
    template, work = added
    register_template("cpu", template)
    target = detect_target("cpu", 1)
    alone = Space(work, target, [template(work, target)])
    schedules = {alone.schedule(row) for row in alone.sample(np.random.default_rng(0), 100)}
    assert len(schedules) == 4
    assert template.name in space_for(work, target).templates
    assert all(verdict.right for verdict in measure(alone, sorted(schedules, key=str)))
    checked_quantities(alone, seed=0, schedules=100)
    assert not silent_rules([alone], schedules=100)


def test_it_says_what_it_does_not_serve(added):
    template, _ = added
    reason = template.refuses(workload("softmax r=4 c=8"), detect_target("cpu", 1))
    assert reason
    assert "\n" not in reason
