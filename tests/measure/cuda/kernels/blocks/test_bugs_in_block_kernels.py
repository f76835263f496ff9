"""Bugs planted in generated SIMT and mma kernels: the emulator must find every one."""

from __future__ import annotations

from tests.measure.cuda.kernels.blocks.test_block_kernels import ORDERS, case, matmul
from tests.measure.cuda.kernels.kernel_contract import KernelContract

CASES = {
    "ring": case("mma", matmul(80, 40, 160, dtype="float16"), tile_columns=32),
    "crosswise": case("mma", matmul(40, 48, 96, ORDERS[4], dtype="float16")),
    "slabs": case("mma", matmul(64, 64, 32, dtype="float16"), warp_rows=2, store_path="shared"),
    "registers": case("mma", matmul(33, 32, 167, dtype="float16")),
    "simt": case("simt", matmul(48, 40, 40)),
    "tails": case("simt", matmul(41, 37, 19)),
    "split": case("simt", matmul(32, 32, 96), splits=3),
    "atomics": case("mma", matmul(32, 32, 192, dtype="float16"), splits=3, merge="add"),
}
# what is broken: kernel, pattern, replacement of its first occurrence
BUGS = {
    "no barrier in the ring": ("ring", r"(cp_async_wait<1>\(\);\n\s*)tw::sync_block\(\);", r"\1"),
    "waits for a group too few": ("ring", r"cp_async_wait<1>", "cp_async_wait<2>"),
    "does not wait": ("ring", r"tw::cp_async_wait<1>\(\);", ""),
    "no commit in the prologue": ("ring", r"tw::cp_async_commit\(\);", ""),
    "fills the stage being read": ("ring", r"\(step \+ 2\) % 3", "step % 3"),
    "fills the stage to come": ("ring", r"\(step \+ 2\) % 3", "(step + 1) % 3"),
    "reads the wrong stage": ("ring", r"step % 3 \*", "(step + 1) % 3 *"),
    "one step too many": ("ring", r"step \+ 2 < steps", "step + 1 < steps"),
    "one step too few": ("ring", r"step \+ 2 < steps", "step + 3 < steps"),
    "advances half a tile": ("ring", r"left_from \+= 32", "left_from += 16"),
    "copies without the swizzle": ("ring", r" \^ ", " + 0 * "),
    "copies rows that are not there": ("ring", r"(tw::cp_async.*), row0[^?]*\? 16 : 0", r"\1"),
    "stores rows that are not there": ("ring", r"if \(row0[^&]*&& ", "if ("),
    "does not transpose": ("crosswise", r"ldmatrix_x4_trans", "ldmatrix_x4"),
    "halves of a fragment exchanged": (
        "ring",
        r"pair\[2\] = \{(.*), (.*)\};",
        r"pair[2] = {\2, \1};",
    ),
    "no barrier before the slabs": ("slabs", r"  tw::sync_block\(\);\n(?=.*slab)", ""),
    "slabs are read too early": (
        "slabs",
        r"(store_shared<2>[^\n]*\n\s*\}\n\s*\}\n)\s*tw::sync_warp\(\);",
        r"\1",
    ),
    "slabs overlap": ("slabs", r"/ 32 \* \d+;", "/ 64 * 1536;"),
    "stores before the products": ("registers", r"if \(more\)(?=[^}]*store_shared)", "if (!more)"),
    "no barrier before the loop": ("simt", r"tw::sync_block\(\);\n(?=.*u32 stage)", ""),
    "no barrier in the loop": ("simt", r"(next = read;\n\s*)tw::sync_block\(\);", r"\1"),
    "one stage for both": ("simt", r"next = shared \+ \d+", "next = shared"),
    "a step too few is loaded": ("simt", r"step \+ 2 < steps", "step + 3 < steps"),
    "a vector is not stored": ("simt", r"tw::store_shared[^\n]*(\n\s*if \(more)", r"\1"),
    "multiplies what is being loaded": ("simt", r"b\[column \+ 4\]", "b[column]"),
    "terms that are not there": ("tails", r"first_step == 0 \? 3 : 8", "8"),
    "terms twice": ("tails", r"left_from \+= first_terms", "left_from += 2"),
    "a tile moved too far": ("tails", r"first_row : 9", "first_row : 8"),
    "the ticket is kept": ("split", r"tw::store_global\(ticket, 0u\)", ""),
    "finishes too early": ("split", r"!= 2\) return", "!= 1) return"),
    "no fence before the ticket": ("split", r"tw::fence_global\(\);", ""),
    "no fence before the ticket of atomics": ("atomics", r"tw::fence_global\(\);", ""),
    "the ticket before the barrier": (
        "split",
        r"(tw::fence_global\(\);\n\s*)tw::sync_block\(\);",
        r"\1",
    ),
    "fences before it stores": (
        "split",
        r"(?s)(const i64 part = blockIdx.y;.*?\n)(\s*\}\n)\s*tw::fence_global\(\);",
        r"tw::fence_global();\n\1\2",
    ),
    "a part is left out": ("split", r"part < 3", "part < 2"),
    "does not clear the sums": ("atomics", r"tw::store_global\(exchanged[^;]*;", ";"),
    "a part does nothing": ("atomics", r"rest < (\d+) \? rest : \1", r"rest < \1 ? rest : \1 - 1"),
}


class TestBlockKernels(KernelContract):
    cases, bugs = CASES, BUGS
