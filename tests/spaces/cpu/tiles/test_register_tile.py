"""Machine code of register tiles, for instruction sets that the test's machine need not have."""

from __future__ import annotations

import platform
import subprocess

import pytest

from spaces.algebra.layout import row_major, strided
from spaces.cpu.compiler import find_compiler
from spaces.cpu.isa import used
from spaces.cpu.tiles.register_tile import RegisterTile
from spaces.cpu.vectors.simd import prelude


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the machine code is that of x86")
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
    compiler = find_compiler()
    if compiler.name != "gcc":
        pytest.skip("registers are those that gcc gives")
    columns = vectors * lanes
    tile = RegisterTile(
        "subject", rows, columns, lanes, unroll=2, prefetch=0,
        left=strided((rows, 64), (80, 1)), right=row_major(64, columns),
        sums=strided((rows, columns), (400, 1)), fetches_sums=False, keeps_right=True,
    )  # fmt: skip
    text = "\n".join(tile.source()).replace("static __attribute__((noinline))", "")
    source, code = tmp_path / "tile.c", tmp_path / "tile.s"
    source.write_text(prelude(isa, lanes, bf16_dot=False) + used(isa) + text)
    command = [compiler.path, "-O2", f"-march={machine}", "-w", "-S", source, "-o", code]
    subprocess.run(command, check=True, timeout=60)
    moved = [line for line in code.read_text().splitlines() if "vmov" in line]
    assert not [line for line in moved if "sp)" in line or "bp)" in line]
