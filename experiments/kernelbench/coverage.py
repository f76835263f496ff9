"""Measure the share of each problem's FLOPs that is in regions, and list what is left to torch."""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from multiprocessing.connection import Connection
from statistics import fmean
from typing import Any

import torch

from experiments.kernelbench.problems import Problem
from tilewright.scheduler.torch.extraction.capture import captured
from tilewright.scheduler.torch.regions.partition import partition
from tilewright.scheduler.torch.regions.work import flops_of
from tilewright.scheduler.torch.translation.nodes import name_of
from tilewright.spaces.errors import InputError
from tilewright.spaces.target import Target

MOST = 5
"""Operators left to torch that a report names."""


def covered(problem: Problem, target: Target, seconds: float) -> dict[str, Any]:
    """Measure the coverage of one problem, in a process of its own that ends after some seconds."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(
        target=_answer, args=(theirs, problem, target)
    )
    began = time.monotonic()
    process.start()
    theirs.close()
    try:
        found = ours.recv() if ours.poll(seconds) else {"failed": f"over {seconds:g} s"}
    except EOFError:
        found = {"failed": "the process ended"}
    process.kill()
    process.join()
    about = {"name": problem.name, "level": problem.level, "kept": problem.kept}
    return about | found | {"seconds": round(time.monotonic() - began, 1)}


def warm(target: Target) -> None:
    """Load what each process needs, before they are forked."""
    torch.set_num_threads(1)
    for graph in captured(torch.nn.Linear(8, 8), (torch.empty(4, 8),), target):
        partition(graph, target)


def _answer(pipe: Connection, problem: Problem, target: Target) -> None:
    try:
        pipe.send(coverage(problem, target))
    except InputError as error:
        pipe.send({"failed": str(error)})
    except Exception as error:  # code of the problem's
        pipe.send({"failed": f"{type(error).__name__}: {str(error)[:200]}"})


def coverage(problem: Problem, target: Target) -> dict[str, Any]:
    """Measure the coverage of one problem, as it is: in training mode, weights on ``meta``."""
    with torch.device("meta"):
        source = problem.load()
        module = source.Model(*source.get_init_inputs())
        args = source.get_inputs()
    flops = inside = 0
    keys: Counter[str] = Counter()
    left: Counter[str] = Counter()
    why: dict[str, str] = {}
    for graph in captured(module, args, target):
        parted = partition(graph, target)
        flops += sum(map(flops_of, graph.nodes))
        inside += sum(flops_of(node) for region in parted.regions for node in region.nodes)
        keys.update(region.workload.key for region in parted.regions)
        left.update(name_of(node) for node in parted.left)
        why |= {name_of(node): reason for node, reason in parted.left.items()}
    return {
        "flops": flops,
        "covered": inside / flops if flops else None,
        "regions": keys.total(),
        "distinct": len(keys),
        "left": dict(left.most_common()),
        "why": why,
    }


def summary(found: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Facts about some problems together."""
    every = list(found)
    done = [each for each in every if "failed" not in each]
    shares = [each["covered"] for each in done if each["covered"] is not None]
    left: Counter[str] = Counter()
    for each in done:
        left.update(each["left"])
    return {
        "problems": len(every),
        "captured": len(done),
        "with products": len(shares),
        "mean share of FLOPs": fmean(shares) if shares else None,
        "all of the FLOPs": sum(share > 0.995 for share in shares),
        "nothing left": sum(not each["left"] for each in done),
        "left": dict(left.most_common()),
    }


def lines(summaries: Mapping[str, Mapping[str, Any]]) -> Sequence[str]:
    """Return one line for each level."""
    return [
        f"level {level}: {found['captured']} of {found['problems']} captured, "
        f"{found['mean share of FLOPs'] or 0:.3f} of the FLOPs, {found['nothing left']} leave "
        f"nothing; most left: {', '.join(list(found['left'])[:MOST])}"
        for level, found in summaries.items()
    ]
