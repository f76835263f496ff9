"""Losses of a small language model with Tilewright's kernels beside eager's; see README.md."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from experiments.resuming import write_run
from experiments.training.model import Model, Sizes, losses
from tilewright import detect_target, explain

OUT = Path(__file__).parent / "results"


def compare(sizes: Sizes, seeds: int, steps: int, judge: str) -> dict[str, Any]:
    """Return both losses of each seed, and how many regions of each graph kernels compute."""
    model = Model(sizes)
    fast = torch.compile(model, backend="tilewright", options={"judge": judge, "db": None})
    curves = {
        str(seed): {
            "own": losses(model, fast, sizes, seed, steps),
            "eager": losses(model, model, sizes, seed, steps),
        }
        for seed in range(seeds)
    }
    regions = {
        graph.kind: {
            by: sum(region.places for region in graph.regions if region.by == by)
            for by in ("tilewright", "torch")
        }
        for graph in explain(fast).graphs
    }
    return {"steps": steps, "losses": curves, "regions": regions}


def most_apart(curves: dict[str, dict[str, list[float]]]) -> float:
    """Return the most that a loss differs from eager's in the same step, over all seeds."""
    pairs = (pair for each in curves.values() for pair in zip(*each.values(), strict=True))
    return max(abs(own - eager) for own, eager in pairs)


def main(given: Sequence[str] | None = None) -> None:
    """Compare, print a line a seed, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--small", action="store_true", help="a small model, to try it out")
    parser.add_argument("--judge", choices=("always", "measure"), default="always")
    parser.add_argument("--out", type=Path, default=OUT / "results.json")
    asked = parser.parse_args(given)
    torch.set_num_threads(1)
    sizes = Sizes(32, 32, 2, 1, 16, 4) if asked.small else Sizes()
    found = compare(sizes, asked.seeds, asked.steps, asked.judge)
    for seed, curves in found["losses"].items():
        apart = most_apart({seed: curves})
        first, last = curves["own"][0], curves["own"][-1]
        print(f"seed {seed}: {first:.4f} to {last:.4f}, at most {apart:.1e} from eager's")
    write_run(asked.out, detect_target("cpu", 1).summary, {"torch": torch.__version__} | found)


if __name__ == "__main__":
    main()
