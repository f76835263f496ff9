"""Activations that layers keep, and the time of both passes, beside eager's; see README.md."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from experiments.activations.counting import both_passes, kept_bytes
from experiments.activations.inverting import errors
from experiments.activations.layers import CASES, SMALL, Case
from experiments.resuming import write_run
from experiments.turns import in_turns, medians, ratio
from tilewright import detect_target, explain

OUT = Path(__file__).parent / "results"
Run = Callable[[Tensor], Tensor]


def compare(case: Case, shares: Sequence[float], options: Mapping[str, Any], rounds: int) -> Any:
    """Return for eager mode, Inductor and our backend what they keep and the ratio of times; with
    the gradients checked."""
    model, x = case.made()
    runs = _runs(model, shares, options)
    kept = {name: kept_bytes(run, x, model=model) for name, run in runs.items()}
    calls = {name: both_passes(run, x) for name, run in runs.items()}
    apart = _apart(runs, model, x)
    in_turns(calls, 1)  # what the first call of each takes does not count
    times = in_turns(calls, rounds)
    seconds = medians(times)
    found: dict[str, Any] = {}
    for name in runs:
        middle, quartiles = ratio(times[name], times["eager"])
        found[name] = {
            "kept_bytes": kept[name],
            "of_eager": kept[name] / kept["eager"],
            "seconds": seconds[name],
            "time_over_eager": middle,
            "quartiles": quartiles,
            "gradients_apart": apart[name],
            **(_regions(runs[name]) if name.startswith("tilewright") else {}),
        }
    return found


def _runs(
    model: nn.Module, shares: Sequence[float], options: Mapping[str, Any]
) -> Mapping[str, Run]:
    """Return the model in eager mode, and compiled: by Inductor, and by our backend for each share
    of the activations that it may keep."""
    runs: dict[str, Run] = {"eager": model, "inductor": torch.compile(model)}
    for share in shares:
        own = {**options, "activations": share}
        runs[f"tilewright {share:g}"] = torch.compile(model, backend="tilewright", options=own)
    return runs


def _apart(runs: Mapping[str, Run], model: nn.Module, x: Tensor) -> dict[str, float]:
    """Return the most that a gradient of each differs from eager's, in parts of the greatest
    gradient: that of a bias of keys is 0, but for rounding."""
    wanted = [x, *model.parameters()]
    factor = torch.randn(x.shape, generator=torch.Generator().manual_seed(1))
    found = {name: torch.autograd.grad(run(x), wanted, factor) for name, run in runs.items()}
    eager = found["eager"]
    greatest = max(float(each.abs().max()) for each in eager)
    return {
        name: max(
            float((own - other).abs().max()) / greatest
            for own, other in zip(each, eager, strict=True)
        )
        for name, each in found.items()
    }


def _regions(run: Run) -> dict[str, Any]:
    """Return by graph who computes it, and how many regions kernels compute, of how many."""
    found = {}
    for graph in explain(run).graphs:
        ours = sum(region.places for region in graph.regions if region.by == "tilewright")
        every = sum(region.places for region in graph.regions)
        found[graph.kind] = {"by": graph.by, "regions": [ours, every]}
    return {"graphs": found}


def main(given: Sequence[str] | None = None) -> None:
    """Compare, print a line each, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], metavar="CASE")
    parser.add_argument("--share", nargs="*", type=float, default=[1, 0.99, 0.5])
    parser.add_argument("--judge", choices=("always", "measure"), default="measure")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=0, help="of tuning each graph; 0 for none")
    parser.add_argument("--db", default=None, help="kernels that were tuned")
    parser.add_argument(
        "--inverses", action="store_true", help="errors of solving for inputs alone"
    )
    parser.add_argument("--small", action="store_true", help="small layers, to try it out")
    parser.add_argument("--out", type=Path, default=OUT / "results.json")
    asked = parser.parse_args(given)
    known = SMALL if asked.small else CASES
    if unknown := [name for name in asked.only if name not in known]:
        parser.error(f"there is no case {unknown[0]!r}; allowed: {', '.join(known)}")
    torch.set_num_threads(1)
    options: dict[str, Any] = {"judge": asked.judge, "db": asked.db}
    if asked.seconds:
        options |= {"untuned": "tune", "seconds": asked.seconds}
    results: dict[str, Any] = {
        "torch": torch.__version__,
        "rounds": asked.rounds,
        "seconds": asked.seconds,
    }
    if asked.inverses:
        results["inverses"] = errors()
        for name, found in results["inverses"].items():
            print(f"{name}: " + ", ".join(f"{what} {size:.1e}" for what, size in found.items()))
    else:
        results["cases"] = {}
        for name in asked.only or known:
            torch._dynamo.reset()
            of = (known[name], asked.share, options, asked.rounds)
            results["cases"][name] = compare(*of)
            for who, own in results["cases"][name].items():
                low, high = own["quartiles"]
                print(
                    f"{name:12} {who:15} keeps {own['kept_bytes'] / 2**20:6.2f} MiB, "
                    f"{own['of_eager']:.3f} of eager's, in {own['time_over_eager']:.2f} of its "
                    f"time ({low:.2f} to {high:.2f})",
                    flush=True,
                )
    write_run(asked.out, detect_target("cpu", 1).summary, results)


if __name__ == "__main__":
    main()
