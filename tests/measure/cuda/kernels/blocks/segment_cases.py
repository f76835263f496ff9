"""Products whose rows come in segments, on GPUs: kernels of every template, and mistakes."""

from __future__ import annotations

from dataclasses import replace

from tests.measure.cuda.emulator.planting import Case, deferred
from tilewright.spaces.cuda.hopper.template import Hopper
from tilewright.spaces.cuda.mma.template import Mma
from tilewright.spaces.cuda.simt.template import Simt
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.template import Template

SIZES = "t=37 n=24 k=40 experts=5"
BESIDE = "gelu(x + bias[expert[t], n]) * gate[t, n]"
GROUPED = {
    "one after the other": f"grouped_matmul {SIZES}",
    "transposed weights": f"grouped_matmul {SIZES} b=col",
    "fused": f'grouped_matmul {SIZES} epilogue="{BESIDE}"',
    "gathered": f'grouped_matmul {SIZES} rows=11 epilogue="{BESIDE}"',
    "one group": "grouped_matmul t=19 n=24 k=8 experts=1 b=col",
    "one row": "grouped_matmul t=1 n=17 k=9 experts=4",
    "more groups than rows": "grouped_matmul t=6 n=40 k=33 experts=50",
    "many groups": "grouped_matmul t=6 n=40 k=40 experts=50 b=col",
    "long": f'grouped_matmul t=210 n=40 k=72 experts=3 b=col epilogue="{BESIDE}"',
    "wide": "grouped_matmul t=130 n=136 k=72 experts=3 b=col",
    "other names": (
        '"which: int32[i](sorted < 3); y[i,j] = relu(sum[k](w[which[i],j,k] * x[i,k]))" '
        "i=33 j=30 k=16"
    ),
}
TEMPLATES = {
    "mma": (Mma, "dtype=float16"),
    "mma bfloat16": (Mma, "dtype=bfloat16 out=float32"),
    "simt": (Simt, "dtype=float32"),
    "hopper": (Hopper, "dtype=bfloat16 out=float32"),
    "hopper float16": (Hopper, "dtype=float16"),
}


def space_of(text: str, template: type[Template]) -> Space:
    made = workload(text)
    target = replace(cuda_target("sm_90a"), multiprocessors=8)  # so that blocks have many tiles
    assert template.refuses(made, target) is None
    return Space(made, target, [template(made, target)])


def text_of(name: str, dtype: str) -> str:
    if "other" in name:
        dtype = dtype.replace("out=float32", "")
    return f"{GROUPED[name]} {dtype}"


ALONE = {"splits": 1, "raster": "along_columns", "raster_group": 1, "merge": "store"}
MMA = {
    "tile_rows": 16,
    "tile_columns": 16,
    "warp_rows": 1,
    "warp_columns": 1,
    "store_path": "direct",
}
MMA |= {"depth": 32, "stages": 3, "blocks_per_sm": 1, **ALONE}
SIMT = {"lane_rows": 4, "thread_rows": 2, "thread_columns": 4, "warp_rows": 1, "warp_columns": 1}
SIMT |= {"depth": 8, "blocks_per_sm": 1, "copy_spread": 4, **ALONE}

HOPPER = {"swap_ab": False, "block_m": 64, "block_n": 16, "consumers": 1, "blocks_per_sm": 1}
HOPPER |= {"schedule": "cooperative", "producer_registers": 0, "depth": 32, "cluster": "1x1"}
HOPPER |= {"store_buffers": 0, "stages": 3, "in_flight": 0, "tail_rows": 0}
HOPPER |= {**ALONE, "merge": "add"}


@deferred
def fixed(name: str, kind: str, **changes: int | str) -> Case:
    """One schedule of a template, some of its decisions changed."""
    template, dtype = TEMPLATES[kind]
    space = space_of(text_of(name, dtype), template)
    values = {"mma": MMA, "simt": SIMT, "hopper": HOPPER}[template.name] | changes
    order = [decision.name for decision in space.templates[template.name].decisions]
    schedule = Schedule(template.name, tuple((name, values[name]) for name in order))
    assert space.why_not(schedule) is None, space.why_not(schedule)
    return space.workload, space.lower(schedule)


CASES = {
    "mma": fixed("fused", "mma"),
    "mma shared": fixed(
        "transposed weights", "mma", store_path="shared", tile_columns=32, depth=16
    ),
    "mma gathered": fixed("gathered", "mma"),
    "mma split": fixed("fused", "mma", splits=2, merge="add"),
    "simt": fixed("fused", "simt"),
    "simt, one row": fixed("one row", "simt", lane_rows=1, thread_rows=1, thread_columns=1),
    "mma, many groups": fixed("more groups than rows", "mma bfloat16"),
    "hopper": fixed("long", "hopper", in_flight=1),
    "hopper, in turns": fixed("long", "hopper", schedule="pingpong", consumers=2, raster_group=2),
    "hopper, wide": fixed("long", "hopper", block_m=128, consumers=2, cluster="1x2", splits=2),
    "hopper, staged": fixed("long", "hopper float16", store_buffers=2, block_m=128, consumers=2),
    "hopper, staged in turns": fixed(
        "long", "hopper", store_buffers=1, schedule="pingpong", consumers=2, block_n=32
    ),
    "hopper, staged, transposed": fixed(
        "long", "hopper float16", store_buffers=2, swap_ab=True, block_n=64, block_m=64
    ),
    "hopper, trimmed": fixed("long", "hopper", tail_rows=16, swap_ab=True, block_n=80),
    "hopper, trimmed for both of a cluster": fixed(
        "wide", "hopper float16", tail_rows=16, swap_ab=True, block_n=48, cluster="2x1", depth=64
    ),
    "hopper, trimmed in turns": fixed(
        "wide", "hopper", tail_rows=16, swap_ab=True, block_n=32, schedule="pingpong", consumers=2
    ),
    "hopper, many groups": fixed("many groups", "hopper"),
    "hopper, few rows": fixed("fused", "hopper", swap_ab=True, producer_registers=0),
}
# what is broken: kernel, pattern, replacement of its first occurrence
BUGS = {
    "a segment's last row": ("mma", r"<= segment;", "< segment + (row % 5 > 0);"),
    "rows of the next segment": ("mma", r"\) <= segment;", ") <= segment + 1;"),
    "rows before the segment": ("simt", r"[^(]* >= first_row && ", ""),
    "the segment of another block": ("mma", r"\(tile_row - e \+ 1\)", "(tile_row - e)"),
    "a tile of the segment before": ("mma", r"after - 1 : 0", "after - 2 : 0"),
    "the matrix of the first group": ("mma", r"(right = whole_right) \+ [^;]*", r"\1"),
    "tiles are cut from the first row of all": ("mma", r"start % 16 \+ ", ""),
    "the first tile of each segment again": (
        "mma",
        r"\(tile_row - segment\) \* 16",
        "start / 16 * 16",
    ),
    "a bias of another group": ("mma", r"24 \* segment \+ column0", "24 * (segment / 2) + column0"),
    "a gate of another row": ("mma", r"(e_gate \+ [^;]*24 \* )row0", r"\1tile_row"),
    "rows after the table": (
        "simt",
        r"row0 = first_row < \d+ \? first_row : \d+",
        "row0 = first_row",
    ),
    "too few tiles": ("mma", r"(const int tile_row = [^;]*);", r"\1; if (tile_row > 5) return;"),
    "a gathered row of another": ("mma gathered", r"(tw_entry\(whole_e_row, )[^,]*", r"\1row0"),
    "a row for its number": ("mma gathered", r"(left_at\[[^;]*)left_entry", r"\1row0"),
    "hopper: a search whose lanes do not tell each other": (
        "hopper",
        r"below \+= tw::shuffle_xor\(below, 1\);",
        "",
    ),
    "hopper: a search that ends early": ("hopper", r"round < \d+", "round < 1"),
    "hopper: a tile of the segment before": ("hopper", r"<= tile_row", "< tile_row"),
    "hopper: a tile too few": ("hopper", r"tile_row >= row_tiles\)", "tile_row + 1 >= row_tiles)"),
    "hopper: a tile is not whole": ("hopper", r"(long_as) \+ 63\)", r"\1)"),
    "hopper: rows of the next segment": ("hopper", r"< end_row", "< end_row + 1"),
    "hopper: the matrix of the first group": ("hopper", r", segment\);", ", 0);"),
    "hopper: the next segment's rows by TMA": ("hopper, staged", r"\+ 64 <= end_row", "<= end_row"),
    "hopper: a stage reported too soon": (
        "hopper, staged",
        r"tw::sync_warp\(\);\n( *if \(lane)",
        r"\1",
    ),
    "hopper: a warpgroup with a row left": (
        "hopper, staged",
        r"row0 >= end_row",
        "row0 + 1 >= end_row",
    ),
    "hopper: a buffer's last row": (
        "hopper, staged",
        r"if \(([^)]*\)[^)]*) < end_row &&",
        r"if (\1 + 1 < end_row &&",
    ),
    "hopper: a part that is not whole": (
        "hopper, trimmed",
        r"- first_row \+ 15\)",
        "- first_row)",
    ),
    "hopper: a part for one block of a cluster": (
        "hopper, trimmed for both of a cluster",
        r"barrier, 3, depth0",
        "barrier, 1, depth0",
    ),
    "hopper: a segment one row too late": (
        "hopper",
        r"(\* e), low\);",
        r"\1, low + (0 < e && e < 3));",
    ),
    "hopper: the list before it is made": (
        "hopper",
        r"tw::sync_block\(\);\n *const int row_t",
        "const int row_t",
    ),
    "the last row of the table": ("mma", r"row >= 37 \|\| ", "row >= 37 && "),
}
