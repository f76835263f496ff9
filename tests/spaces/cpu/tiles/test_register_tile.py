"""Machine code of register tiles, for instruction sets that the test's machine need not have."""

from __future__ import annotations

import platform
import subprocess

import pytest

from tests.spaces.cpu.machine import this_cpu
from tilewright.spaces.algebra.layout import row_major, strided
from tilewright.spaces.cpu.compiler import find_compiler
from tilewright.spaces.cpu.isa import used
from tilewright.spaces.cpu.tiles.register_tile import RegisterTile
from tilewright.spaces.cpu.tiles.turns import Turn
from tilewright.spaces.cpu.vectors.simd import prelude

on_x86 = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the machine code is that of x86"
)


@on_x86
@pytest.mark.parametrize(
    ("isa", "machine", "lanes", "rows", "vectors"),
    [
        ("avx2", "haswell", 8, 4, 3),
        ("avx2", "haswell", 8, 6, 2),
        ("avx512", "skylake-avx512", 16, 6, 4),
        ("avx512", "skylake-avx512", 16, 14, 2),
    ],
)
def test_a_tile_that_takes_all_registers_keeps_its_sums_in_them(
    isa, machine, lanes, rows, vectors, tmp_path
):
    columns = vectors * lanes
    tile = RegisterTile(
        "subject", rows, columns, lanes, unroll=2, prefetch=0,
        left=strided((rows, 64), (80, 1)), right=row_major(64, columns),
        sums=strided((rows, columns), (400, 1)), fetches_sums=False, keeps_right=True,
    )  # fmt: skip
    assert not moves_to_stack(tile, isa, machine, tmp_path)


@on_x86
@pytest.mark.parametrize(("rows", "vectors"), [(6, 4), (14, 2)])
def test_a_tile_whose_rows_share_elements_keeps_its_sums_in_registers(rows, vectors, tmp_path):
    """Windows of 7 elements of 3 channels, every second one: a row reads again what the row before
    it read six steps later."""
    columns = vectors * 16
    tile = RegisterTile(
        "subject", rows, columns, 16, unroll=2, prefetch=0,
        left=strided((rows, 21), (6, 1)), right=row_major(21, columns),
        sums=strided((rows, columns), (64, 1)), fetches_sums=False,
        turns=(Turn(7, 687, 21 * columns),),
    )  # fmt: skip
    assert not moves_to_stack(tile, "avx512", "skylake-avx512", tmp_path)


def moves_to_stack(tile, isa, machine, folder):
    """Instructions of its machine code, by a target's flags, that move values to or from memory of
    the function's own."""
    compiler = find_compiler()
    if compiler.name != "gcc":
        pytest.skip("registers are those that gcc gives")
    text = "\n".join(tile.source()).replace("static __attribute__((noinline))", "")
    source, code = folder / "tile.c", folder / "tile.s"
    source.write_text(prelude(isa, tile.lanes, bf16_dot=False) + used(isa) + text)
    flags = [flag for flag in this_cpu().compiler_flags if flag != compiler.native]
    command = [compiler.path, *flags, f"-march={machine}", "-w", "-S", source, "-o", code]
    subprocess.run(command, check=True, timeout=60)
    moved = [line for line in code.read_text().splitlines() if "vmov" in line]
    return [line for line in moved if "sp)" in line or "bp)" in line]
