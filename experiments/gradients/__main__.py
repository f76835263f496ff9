"""Gradients by derivation beside torch's own backward, on one thread or a GPU; see README.md."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.gradients.cases import CASES, CONVOLUTIONS, Case
from experiments.gradients.gpu_cases import GPU_CASES
from experiments.resuming import write_run
from experiments.turns import in_turns, medians, ratio
from tilewright import Program, Target, best, detect_target, gradient, saving, tune
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.language.inputs import draw
from tilewright.spaces.operators import as_workload
from tilewright.spaces.workloads.calling import calling_of

OUT = Path(__file__).parent / "results"
Call = Callable[[], Any]


def compare(case: Case, target: Target, seconds: float, rounds: int, database: str) -> Any:
    """Return the times of a gradient and of torch's backward, in turns."""
    program = gradient(case.operator, case.wrt, saved=case.saved)
    if seconds:
        tune(program, target, database, seconds=seconds)
    function = best(program, target, database if seconds else None)
    arrays, result, tensors = _inputs(case)
    given = [arrays[array.name] for array in calling_of(as_workload(program)).inputs]
    factor, wanted = torch.from_numpy(arrays[f"d{result[0]}"]), [tensors[n] for n in case.wrt]

    def by_torch() -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(result[1], wanted, factor, retain_graph=True)

    found = function(*given)
    _check(found if isinstance(found, tuple) else (found,), by_torch())
    calls: dict[str, Call] = {"own": lambda: function(*given), "torch": by_torch}
    in_turns(calls, 1)  # what the first call of each takes does not count
    times = in_turns(calls, rounds)
    return _summary(times) | {"schedule": str(function.schedule), "stages": len(program.stages)}


def _inputs(case: Case) -> tuple[dict[str, Any], tuple[str, torch.Tensor], dict[str, Any]]:
    """Draw operands, and compute what is saved; the result by its name, and torch's operands."""
    written = as_workload(case.operator).written
    arrays: dict[str, Any] = dict(draw(written, 1))
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    for name in case.wrt:
        tensors[name].requires_grad_()
    output = written.outputs[0]
    result = case.by_torch(tensors)
    arrays |= _saved(written, case, arrays)
    generator = np.random.default_rng(2)
    arrays[f"d{output.name}"] = generator.uniform(-1, 1, output.shape).astype(np.float32)
    return arrays, (output.name, result), tensors


def _saved(written: Program, case: Case, arrays: Mapping[str, Any]) -> dict[str, Any]:
    if not case.saved:
        return {}
    states = evaluate(saving(written, case.saved), arrays)
    return {name: np.ascontiguousarray(states[name], np.float32) for name in case.saved}


def _check(found: Sequence[Any], wanted: Sequence[torch.Tensor]) -> None:
    for own, other in zip(found, wanted, strict=True):
        size = float(other.abs().max())
        np.testing.assert_allclose(np.asarray(own), other.numpy(), rtol=1e-3, atol=1e-4 * size)


def _summary(times: Mapping[str, list[float]]) -> dict[str, Any]:
    """Return median times, and of torch's over ours, turn by turn, median and quartiles."""
    middle, quartiles = ratio(times["torch"], times["own"])
    return {"seconds": medians(times), "ratio": middle, "quartiles": quartiles}


def main(given: Sequence[str] | None = None) -> None:
    """Compare, print a line for each case, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--only", nargs="*", default=[], metavar="CASE")
    parser.add_argument("--convolutions", action="store_true", help="held-out ones, by an operand")
    parser.add_argument("--seconds", type=float, default=30, help="of tuning each; 0 for none")
    parser.add_argument("--minutes", type=float, default=4, help="for all of it on a GPU")
    parser.add_argument("--jobs", type=int, default=0, help="processes beside a GPU; 0: all cores")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--small", action="store_true", help="small sizes, to try the command out")
    parser.add_argument("--db", default="gradients.db")
    parser.add_argument("--out", type=Path, default=OUT / "results.json")
    asked = parser.parse_args(given)
    known = GPU_CASES if asked.target == "cuda" else {**CASES, **CONVOLUTIONS}
    if unknown := [name for name in asked.only if name not in known]:
        parser.error(f"there is no case {unknown[0]!r}; allowed: {', '.join(known)}")
    if asked.target == "cuda":
        from experiments.gradients import gpu

        return gpu.main(asked)
    torch.set_num_threads(1)
    target, found = detect_target("cpu", 1), {}
    for name in asked.only or (CONVOLUTIONS if asked.convolutions else CASES):
        case = _small(known[name]) if asked.small else known[name]
        own = found[name] = compare(case, target, asked.seconds, asked.rounds, asked.db)
        lower, upper = own["quartiles"]
        times = ", ".join(f"{who} {s * 1e3:.2f} ms" for who, s in own["seconds"].items())
        print(f"{name:22} {times}: {own['ratio']:.2f} ({lower:.2f} to {upper:.2f})", flush=True)
    results = {
        "torch": torch.__version__,
        "seconds": asked.seconds,
        "rounds": asked.rounds,
        "cases": found,
    }
    write_run(asked.out, target.summary, results)


def _small(case: Case) -> Case:
    """Return a case of sizes that take no time: of each only the first one or two digits."""
    return replace(case, operator=re.sub(r"=(\d\d?)\d*", r"=\1", case.operator))


if __name__ == "__main__":
    main()
