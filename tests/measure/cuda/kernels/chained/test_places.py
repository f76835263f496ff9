"""Places of the greatest and the least score of a row, found by chained kernels of a GPU: top-1
routing, and what else is asked in the same pass."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.emulator.planting import Case, deferred
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tests.spaces.chained_programs import made
from tilewright.measure.cuda.emulator import INTERLEAVINGS
from tilewright.spaces.cuda.chained.template import CudaChained
from tilewright.spaces.cuda.chained_hopper.template import ChainedHopper
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule, Value
from tilewright.spaces.workloads.workload import Workload

H200 = cuda_target("sm_90a")
PLAIN: dict[str, Value] = {
    "query_storage": "shared", "row_fragments": 1, "keys": 16, "warps": 2, "warp_splits": 1,
    "stages": 2,
    "blocks_per_sm": 1, "rescale": "always", "splits": 1, "merge": "kernel", "order": "rows",
}  # fmt: skip
PRODUCT = "p[i,j] = sum[d](x[i,d] * u[j,d])\n"
FORMS = {
    "routing": PRODUCT + "y[i] = argmax[j](p[i,j])",
    "the least of squares": PRODUCT + "y[i] = argmin[j](p[i,j] * p[i,j])",
    "with its share": PRODUCT + "y[i] = argmax[j](p[i,j])\nm[i] = max[j](p[i,j])\n"
    "g[i] = 1 / sum[j](exp(p[i,j] - m[i]))\n-> y, g",
    "keys up to a row": "where j <= 4 * i + 3\n" + PRODUCT + "y[i] = argmax[j](p[i,j] + c[j])",
    "every third key": "where (i + j) % 3 == 1\n" + PRODUCT + "y[i] = argmax[j](p[i,j])",
    "beside attention": PRODUCT + "y[i] = argmax[j](p[i,j])\n"
    "z[i,e] = sum[j](softmax[j](p[i,j]) * v[j,e])\n-> y, z",
}
SCHEDULES: dict[str, dict[str, Value]] = {
    "plain": {},
    "last": {"splits": 3, "merge": "last", "row_fragments": 2},
    "later": {"splits": 4, "keys": 32, "query_storage": "registers"},
    "teams": {"warp_splits": 4, "warps": 1},
    "clusters": {"warp_splits": 2, "splits": 2, "merge": "cluster", "stages": 4},
}
BIASED = PRODUCT + "y[i] = argmax[j](p[i,j] + c[j])"


@deferred
def case(text: str, values: dict[str, Value]) -> Case:
    """The kernel of a text."""
    work = Workload("program", (), made(text, "float16", j=150), "")
    template = CudaChained(work, H200)
    columns = {d.name: d.values[-1] for d in template.decisions if d.name == "columns"}
    return work, template.lower(Schedule("chained", tuple((PLAIN | columns | values).items())))


CASES = {f"{name}, {how}": case(FORMS[name], SCHEDULES[how])
         for number, name in enumerate(FORMS)
         for how in (list(SCHEDULES)[number % 5], list(SCHEDULES)[(number + 2) % 5])}  # fmt: skip
BROKEN = {how: case(FORMS["with its share"], values) for how, values in SCHEDULES.items()}
BROKEN["masked"] = case(FORMS["keys up to a row"], {"keys": 32})
# what is broken: kernel, pattern, replacement of its first occurrence
BUGS = {
    "the best of a tile for that of all": (
        "plain",
        r"next0\[h\] = state0\[r\];",
        "next0[h] = part0[h] - 1.0f;",
    ),
    "places of a tile": ("plain", r"first \+ at\);", "at);"),
    "the other block of eight is left out": (
        "plain",
        r"tw_argmax\(part0\[h\], found0\[h\], part0\[h \+ 2\], found0\[h \+ 2\]\);",
        "",
    ),
    "keys beyond those of a row": ("masked", r"if \(inside\) tw_argmax", "tw_argmax"),
    "one lane's own": (
        "plain",
        r"tw_argmax\(state0\[r\], place0\[r\], tw::shuffle_xor\(state0\[r\], 2\),.*",
        "",
    ),
    "another lane's place": ("plain", r"tw::shuffle_xor\(place0\[r\], 1\)", "place0[r]"),
    "the first part's place": ("last", r"place0\[r\], other0, at0", "place0[r], other0, 0 * at0"),
    "another lane's place for its best": (
        "last",
        r"tw::bits_float\(\(u32\)tw::shuffle_xor\(place0\[r\], 2\)\)",
        "tw::bits_float((u32)place0[r])",
    ),
    "a place is where a key was seen": ("later", r"(int at0 = .*other)4", r"\g<1>3"),
    "places of one team": ("teams", r"begin_key \+= team \* share", "begin_key += 0 * share"),
    "a place of a block's own": (
        "clusters",
        r"const int at0 = \(int\)tw::float_bits\(.*",
        "const int at0 = place0[r];",
    ),
}  # fmt: skip


class TestPlaces(KernelContract):
    cases, broken, bugs = CASES, BROKEN, BUGS


@pytest.mark.parametrize(
    ("value", "places", "wanted"),
    [
        (0.0, slice(None), 0),
        (100.0, [7, 40, 149], 7),
        (100.0, [41, 33, 40], 33),
        (np.nan, [93, 149], 93),
        (-np.inf, slice(None), 0),
    ],
)
def test_the_first_of_equal_ones_is_found(emulator, value, places, wanted):
    """All equal, three in different tiles or blocks of a tile, NaN, and all minus infinity."""
    for values in SCHEDULES.values():
        work, kernel = case(BIASED, values)
        inputs = dict(work.make_inputs(0))
        inputs["x"] = inputs["x"] * 0
        inputs["c"] = inputs["c"] * 0
        inputs["c"][places] = value
        result = emulator.run(kernel, inputs, INTERLEAVINGS[0])
        assert result.error_kind is None, result.error_text
        assert (result.outputs["y"] == wanted).all(), values


@pytest.mark.parametrize("number", range(4))
def test_where_nothing_is_above_minus_infinity_it_is_the_first_key_that_is_seen(emulator, number):
    """Of those that it sees, wherever they begin."""
    row, key = np.indices((45, 150))
    condition, seen = [
        ("j > i", key > row),
        ("(i + j) % 7 == 3", (row + key) % 7 == 3),
        ("j >= 32", key >= 32),
        ("j > 2 * i + 40", key > 2 * row + 40),
    ][number]
    for values in SCHEDULES.values():
        work, kernel = case(f"where {condition}\n{BIASED}", values)
        inputs = dict(work.make_inputs(0))
        inputs["x"] = inputs["x"] * 0
        inputs["c"][...] = -np.inf
        result = emulator.run(kernel, inputs, INTERLEAVINGS[0])
        assert result.error_kind is None, result.error_text
        assert (result.outputs["y"] == seen.argmax(axis=1)).all(), values


def test_a_row_without_keys_has_the_first_place(emulator):
    work, kernel = case(f"where j <= i - 3\n{BIASED}", {})
    outputs = emulator.run(kernel, work.make_inputs(0), INTERLEAVINGS[0]).outputs
    assert (outputs["y"][:3] == 0).all()


def test_only_kernels_without_tma_find_places():
    """Rows read an array of scores, which is more than one kernel; on Hopper, too, there is one."""
    work = case(FORMS["beside attention"], {})[0]
    assert "y is a place" in (ChainedHopper.refuses(work, H200) or "")
    assert "chained" in space_for(case(FORMS["routing"], {})[0], H200).templates
