"""How a kernel divides its work: levels from its call, its text and its template's quantities."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from tests.scheduler.report.made_up import hostile, of_records, record, sampled
from tests.spaces import frozen
from tilewright.measure.database import Database
from tilewright.scheduler.report.levels import Levels, Spread, mapping
from tilewright.scheduler.report.material import Material, read_materials
from tilewright.scheduler.report.outline import Form, outline, path_of
from tilewright.scheduler.report.source import source_of
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.operators import workload
from tilewright.spaces.target import Target

SVG = "{http://www.w3.org/2000/svg}"
AVX512, HOPPER = frozen.TARGETS["avx512"], frozen.TARGETS["sm_90a"]


def material_of(db: Path) -> Material:
    with Database(db, create=False) as database:
        (found,) = read_materials(database)
        return found


def a_kernel_each(target: Target) -> list[tuple[str, Kernel]]:
    """One kernel of each template that has a schedule at hand."""
    found = []
    for name, spaces in frozen.spaces(target):
        for space in spaces[:1]:
            for row in space.sample(np.random.default_rng(1), 1):
                found.append((name, space.lower(space.schedule(row))))
    return found


@pytest.mark.parametrize("target", [AVX512, HOPPER], ids=["avx512", "sm_90a"])
def test_the_text_of_every_template_is_read(target):
    for name, kernel in a_kernel_each(target):
        source = kernel.source.body
        lines = outline(source, kernel.call.entry)
        assert len(lines) == len(source.splitlines()), name
        functions = {line.name for line in lines if line.form is Form.FUNCTION}
        called = {kernel.call.function(each) for each in kernel.call.launches}
        assert (called or {kernel.call.entry}) <= functions, name
        for place, (line, text) in enumerate(zip(lines, source.splitlines(), strict=True)):
            assert path_of(lines, place)[-1] == place
            if text.strip().startswith(("for ", "while ")) and not line.continues:
                assert line.form is Form.LOOP, (name, text)
                assert line.parent is not None
        opened = [text.count("{") - text.count("}") for text in source.splitlines()]
        assert sum(opened) == 0, name


TEXT = """\
static void tw_1_tile(const float *a, long depth) {
  const int steps = 6;
  float sums[4] = {0};
  for (long k0 = 0, k0_most = depth, k0_end = k0_most < 9 ? k0_most : 9; k0 < k0_end; k0++) {
    sums[0] += tw_fma(a[k0], "}");  // {
  }
  for (int step = 2; step < steps; step += 2) {
    if (depth > 3) tw_store(a, sums);
    else tw_skip(a);
  }
}
void tw_1(
    void *const *buffers, const tw_runtime *runtime) {
  for (int r = 0; r < depth; r++) {
    tw_1_tile(buffers[0], 5);
  }
}
"""


def test_statements_are_said_in_words():
    lines = outline(TEXT, "tw_1")
    assert [(line.words, line.turns) for line in lines if line.words and not line.continues] == [
        ("function tile", None),
        ("declares steps", None),
        ("declares array sums", None),
        ("loop over k0, at most 9 turns", 9),
        ("adds to sums[0] by fma", None),
        ("loop over step, 2 turns", 2),
        ("where depth > 3: calls store", None),
        ("otherwise: calls skip", None),
        ("function called first", None),
        ("loop over r, to depth", None),
        ("calls tile", None),
    ]
    assert path_of(lines, 4) == [0, 3, 4]
    assert path_of(lines, 14) == [11, 13, 14]
    assert lines[14].uses == ("tw_1_tile",)


def levels_of(figure: Levels, spread: Spread) -> list[tuple[str, int | None]]:
    return [(each.name, each.count) for each in figure.levels if each.spread is spread]


def test_a_cpu_divides_among_cores_loops_and_vectors(tmp_path):
    work = workload("matmul", m=512, n=512, k=512)
    material = material_of(sampled(tmp_path / "cpu", work, AVX512))
    figure = mapping(material)
    _, kernel = material.kernels[0]
    text = kernel.source.body
    cores, *vectors = levels_of(figure, Spread.SIDE_BY_SIDE)
    assert vectors == [("vectors", 16)]
    assert cores[1] == 1 or f"runtime->pool, {cores[1]}," in text
    loops = [each for each in figure.levels if each.spread is Spread.IN_TURN]
    assert len(loops) > 2
    for each in loops:
        assert each.line is not None
        assert "for (" in text.splitlines()[each.line - 1]
        assert str(each.count) in text.splitlines()[each.line - 1]
    filled = [each.name for each in figure.levels if each.spread is Spread.FILLED]
    assert filled[0] == "registers of a core"
    assert "L1 cache of a core" in filled
    picture = ET.fromstring(figure.svg())
    assert len(list(picture.iter(f"{SVG}text"))) == len(figure.levels)


def test_a_gpu_divides_among_blocks_warps_and_lanes(tmp_path):
    work = workload("matmul", m=512, n=512, k=512)
    material = material_of(sampled(tmp_path / "gpu", work, HOPPER))
    found = dict(levels_of(mapping(material), Spread.SIDE_BY_SIDE))
    launches = material.kernels[0][1].call.launches
    assert found["grid"] in {np.prod(each.grid) for each in launches}
    assert found["warps"] in {np.prod(each.block) // 32 for each in launches}
    assert found["lanes"] == 32


def test_a_source_tells_what_each_line_is_and_how_the_runner_up_differs(tmp_path):
    material = material_of(sampled(tmp_path / "cpu", workload("softmax", r=64, c=100), AVX512))
    found = source_of(material)
    told = json.loads(found["lines"])
    assert len(told) == len(found["source"].splitlines())
    best, other = (schedule for schedule, _ in material.kernels)
    assert best != other
    for name, one, two in found["differs"]:
        assert (str(best.values.get(name, "-")), str(other.values.get(name, "-"))) == (one, two)
    assert found["differs"]
    assert found["difference"].startswith("--- runner-up")


def test_schedules_that_no_template_has_draw_nothing(tmp_path):
    for db in (hostile(tmp_path / "hostile"), of_records(tmp_path / "one", [record(1, 1e-3)])):
        material = material_of(db)
        assert mapping(material).is_empty
        assert ET.fromstring(mapping(material).svg()).tag == f"{SVG}svg"
        assert source_of(material)["source"] == ""
