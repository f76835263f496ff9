"""One compiled block for every number of sequences, and CUDA graphs that share memory; see
README.md."""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

OUT = Path(__file__).parent / "results"
CALLS = 10
"""Calls between two looks at the clock of the GPU."""
WAYS: dict[str, dict[str, Any]] = {
    "eager": {},
    "inductor": {"backend": "inductor", "dynamic": True},
    "tilewright": {"backend": "tilewright", "dynamic": True},
}


class Block(nn.Module):
    """A block like Llama's for one new token of each sequence; its cache is already filled."""

    def __init__(
        self, width: int, heads: int, shared: int, hidden: int, length: int, sequences: int
    ) -> None:
        super().__init__()
        each = width // heads
        self.heads, self.shared, self.each = heads, shared, each
        self.q, self.out = nn.Linear(width, width, False), nn.Linear(width, width, False)
        self.gate, self.up = (nn.Linear(width, hidden, False) for _ in range(2))
        self.down = nn.Linear(hidden, width, False)
        self.first, self.second = (nn.Parameter(torch.ones(width)) for _ in range(2))
        cache = sequences, shared, length, each
        self.register_buffer("keys", torch.randn(cache))
        self.register_buffer("values", torch.randn(cache))

    def forward(self, x: Tensor) -> Tensor:
        """Return ``x``, of shape (sequences, width), after the block."""
        size = x.shape[0]
        q = self.q(_normed(x, self.first)).view(size, self.heads, 1, self.each)
        keys, values = self.keys[:size], self.values[:size]
        y = F.scaled_dot_product_attention(q, keys, values, enable_gqa=True)
        x = x + self.out(y.reshape(size, -1))
        y = _normed(x, self.second)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def _normed(x: Tensor, weight: Tensor) -> Tensor:
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * weight


class Layers(nn.Module):
    """One block that runs several times, for a graph as long as that of a whole model."""

    def __init__(self, block: nn.Module, layers: int) -> None:
        super().__init__()
        self.block, self.layers = block, layers

    def forward(self, x: Tensor) -> Tensor:
        """Return ``x`` after all layers."""
        for _ in range(self.layers):
            x = self.block(x)
        return x


def speeds(block: Block, ways: Sequence[str], asked: argparse.Namespace) -> dict[str, Any]:
    """Time every way at every number of sequences, in turns, as replays of CUDA graphs."""
    from tilewright.scheduler.torch.backend.replays import replayed

    width = block.q.in_features
    inputs = {size: _input(size, width) for size in range(asked.sizes, 0, -1)}
    runs: dict[str, Callable[[Tensor], Tensor]] = {}
    for way in ways:
        runs[way] = torch.compile(block, **_arguments(way, asked)) if WAYS[way] else block
        runs[way](inputs[asked.sizes])  # the table of kernels covers this size
        print(f"{way} is compiled", flush=True)
    rows: list[dict[str, Any]] = []
    for size, x in inputs.items():
        wanted = block(x)
        timers = {
            way: replayed(lambda each, run=run: run(*each), [[x]]) for way, run in runs.items()
        }
        error = {
            way: float((run(x) - wanted).abs().max() / wanted.abs().max())
            for way, run in runs.items()
        }
        turns = [{way: timer() for way, timer in timers.items()} for _ in range(asked.rounds)]
        rows.append(
            {
                "size": size,
                "seconds": {way: median(turn[way] for turn in turns) for way in ways},
                "over_fastest": median(
                    min(turn[way] for way in ways if way != "tilewright")
                    / turn.get("tilewright", min(turn.values()))
                    for turn in turns
                ),
                "error": error,
            }
        )
        print(json.dumps(rows[-1]), flush=True)
    return {"rows": rows, "explanation": _explained(runs)}


def _arguments(way: str, asked: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of ``torch.compile`` for a way."""
    if way != "tilewright":
        return WAYS[way]
    from tilewright.scheduler.torch.backend.compiler import tilewright

    options = {"untuned": "tune", "seconds": asked.seconds, "db": str(asked.db)}
    return WAYS[way] | {"backend": tilewright, "options": options}


def _explained(runs: dict[str, Any]) -> str:
    if "tilewright" not in runs:
        return ""
    from tilewright import explain

    return str(explain(runs["tilewright"]))


def _input(size: int, width: int) -> Tensor:
    return torch.randn((size, width), device="cuda", dtype=torch.bfloat16)


def memory(run: Callable[[Tensor], Tensor], width: int, asked: argparse.Namespace) -> Any:
    """Compare graphs that share memory with a graph of its own for each size: bytes, and seconds of
    a replay at some sizes, in turns."""
    from tilewright import graphs

    sizes = range(1, asked.sizes + 1)
    inputs = {size: _input(size, width) for size in sizes}
    for x in inputs.values():  # whatever is loaded at a first call does not count
        run(x)
    before = _bytes()
    fast = graphs(run, sizes)
    errors = [_error(fast(inputs[size]), run(inputs[size])) for size in reversed(sizes)]
    plain_errors = [_error(run(inputs[size]), run(inputs[size])) for size in sizes]
    together = _bytes() - before
    before = _bytes()
    private = {size: _private(run, inputs[size]) for size in reversed(sizes)}
    apart = _bytes() - before
    some = [size for size in (1, 2, 7, 16, 32, 64) if size <= asked.sizes]
    return {
        "sizes": asked.sizes,
        "bytes": together,
        "bytes_apart": apart,
        "said_bytes": fast.bytes,
        "executables": fast.executables,
        "error": max(errors),
        "error_of_two_plain_calls": max(plain_errors),
        "over_dedicated": {
            size: _over(partial(fast, inputs[size]), _between_copies(private[size], inputs[size]))
            for size in some
        },
        "over_dedicated_again": {
            size: _over(
                _between_copies(_private(run, inputs[size]), inputs[size]),
                _between_copies(private[size], inputs[size]),
            )
            for size in some
        },
        "alone_over_dedicated": {
            size: _over(
                partial(graphs(run, [size]), inputs[size]),
                _between_copies(private[size], inputs[size]),
            )
            for size in some
        },
    }


def _error(found: Tensor, wanted: Tensor) -> float:
    return float((found - wanted).abs().max() / wanted.abs().max())


def _bytes() -> int:
    """Return the bytes of the GPU in use, with what CUDA took for graphs."""
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    return total - free


def _private(run: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Any, Tensor]:
    """Return a graph of its own for a call, whose memory nobody shares, and its output."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = run(x)
    return graph, y


def _between_copies(made: tuple[Any, Tensor], x: Tensor) -> Callable[[], Any]:
    """Return a replay with a copy of its input before and of its output behind it."""
    (graph, y), place = made, x.clone()

    def call() -> Tensor:
        place.copy_(x)
        graph.replay()
        return y.clone()

    return call


def _over(ours: Callable[[], Any], other: Callable[[], Any]) -> float:
    """Return the seconds of ours over those of another, in the median of turns."""
    from tilewright.scheduler.torch.backend.replays import seconds

    return median(seconds(ours, CALLS) / seconds(other, CALLS) for _ in range(15))


def main(given: Sequence[str] | None = None) -> None:
    """Measure, and write what was found after each part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="*", default=["memory", "speeds"])
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--sizes", type=int, default=64)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--length", type=int, default=1024, help="tokens in the cache")
    parser.add_argument("--seconds", type=float, default=120, help="of tuning")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--db", type=Path, default=Path("decoding.db"))
    parser.add_argument("--out", type=Path, default=OUT / "results.json")
    asked = parser.parse_args(given)
    if not torch.cuda.is_available():
        parser.error("a GPU is needed, and torch finds none")
    found: dict[str, Any] = {
        "date": date.today().isoformat(),
        "command": " ".join(["python -m experiments.decoding", *sys.argv[1:]]),
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
    }
    torch.manual_seed(0)
    with torch.device("cuda"), torch.no_grad():
        block = Block(4096, 32, 8, 14336, asked.length, asked.sizes).to(torch.bfloat16).eval()
        asked.out.parent.mkdir(exist_ok=True)
        for part in asked.parts:
            if part == "memory":
                found[part] = memory(Layers(block, asked.layers), 4096, asked)
                print(json.dumps(found[part]), flush=True)
            else:
                found[part] = speeds(block, asked.ways, asked)
            asked.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
