"""Time the reading of a weight in the order in which blocks of products read it. Needs a GPU.

    python -m experiments.gpu_matmul.orders [--rows 14336] [--bytes 8192] --out FILE

Blocks read 32 KiB each: pieces side by side of as many rows as that makes. Either they first read
all pieces of these rows one after the other (``along``), as if rows were read whole, or first the
same piece of all rows (``across``), as blocks do that have rows of their own and walk along them
side by side.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator
from pathlib import Path

from experiments.gpu_matmul.reading import VECTOR, reading_call, reading_kernel
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.target import detect_target

THREADS, VECTORS = 1024, 2
BLOCK = THREADS * VECTORS * VECTOR * 4
PIECES = (128, 256, 512, 1024, 2048, 4096, 8192)
ORDERS = ("along", "across")


def kernels(rows: int, bytes: int) -> Iterator[Kernel]:
    """Yield the ways to read so many rows of so many bytes, by pieces of theirs and by order."""
    for piece in PIECES:
        if bytes % piece == 0 and rows % (BLOCK // piece) == 0:
            for order in ORDERS:
                yield _kernel(rows, bytes, piece, order)


def _kernel(rows: int, bytes: int, piece: int, order: str) -> Kernel:
    high = BLOCK // piece
    steps, tiles = bytes // piece, rows // high
    block = "(int)blockIdx.x"
    tile, step = (
        (f"{block} / {steps}", f"{block} % {steps}")
        if order == "along"
        else (f"{block} % {tiles}", f"{block} / {tiles}")
    )
    load = (
        f"const int byte = ({THREADS} * i + (int)threadIdx.x) * {4 * VECTOR};",
        f"const i64 row = tile * {high} + byte / {piece};",
        f"const i64 at = row * {bytes} + step * {piece} + byte % {piece};",
        f"tw::load_stream<{VECTOR}, 0>(held + {VECTOR} * i,",
        "                   (const u32 *)((const char *)from + at));",
    )
    begin = f"const int tile = {tile}, step = {step};"
    return reading_kernel(f"read_{piece}_{order}", THREADS, VECTORS, tiles * steps, begin, load)


def main() -> None:
    import torch

    from experiments.gpu_matmul.machine import machine
    from experiments.gpu_matmul.timing import interleave

    options = _options()
    target = detect_target("cuda")
    weight = torch.rand(options.rows * options.bytes // 4, device="cuda")
    out = torch.zeros(1, dtype=torch.int32, device="cuda")
    addresses = {"from": weight.data_ptr(), "out": out.data_ptr()}
    calls = {
        kernel.call.entry: reading_call(kernel, addresses, target.name, (weight, out))
        for kernel in kernels(options.rows, options.bytes)
    }
    times = interleave(calls)
    median = {name: statistics.median(found) for name, found in times.items()}
    found = {"machine": machine(target), "rows": options.rows, "bytes": options.bytes}
    options.out.write_text(json.dumps(found | {"median_s": median}, indent=1) + "\n")
    for name, seconds in median.items():
        print(f"{name:24s} {1e6 * seconds:.2f} us")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.gpu_matmul.orders")
    parser.add_argument("--rows", type=int, default=14336, help="of the weight")
    parser.add_argument("--bytes", type=int, default=8192, help="of a row")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main()
