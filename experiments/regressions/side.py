"""One side of the comparison: a process of a checkout that builds and times kernels on request.

A line of JSON comes for each request, and one goes out: ``{"build": [text, schedule]}`` gives the
schedule that was built (the one that is predicted, where none is asked for), and
``{"time": calls}`` gives the seconds of one call.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module, util
from typing import Any

import numpy as np

PREFIX = "tilewright." if util.find_spec("tilewright.spaces") else ""
"""The package that holds the others: checkouts before 0.1.0 have them at the top level."""
TRIED = 16
"""Schedules that are built at most."""


def module(name: str) -> Any:
    """Return a module of the checkout."""
    return import_module(PREFIX + name)


def built(kind: str, text: str, schedule: Any) -> tuple[Any, list[Any]]:
    """Return the function of a schedule, and the arrays that it is called with."""
    from tilewright import workload

    text, _, template = text.partition(" @")
    work = workload(text)
    function = module("spaces.backends").backend(kind).part("function")
    space = module("spaces.registry").space_for(work, module("spaces.target").detect_target(kind))
    if template:
        space = type(space)(work, space.target, [space.templates[template]])
    if schedule is None:
        made = first_built(function, space)
    else:
        renamed = module("spaces.earlier_names").present_schedule(schedule)
        chosen = module("spaces.schedule").Schedule.from_json(renamed)
        made = function(space, space.ordered(chosen), "measured", False)
    inputs = [work.make_inputs(seed=1)[array.name] for array in work.inputs]
    if kind == "cuda":
        import torch

        inputs = [as_tensor(torch, array) for array in inputs]
    return made, inputs


def first_built(function: Any, space: Any) -> Any:
    """Build the schedules of a random sample, fastest by the roofline first, until one builds. Some
    spill registers, which the roofline does not predict."""
    rows = space.sample(np.random.default_rng(0), 4096)
    latency = module("scheduler.machine").roofline(space.target).latency(space, rows)
    refusal: Exception = ValueError("no schedule")
    for row in rows[np.argsort(latency)[:TRIED]]:
        try:
            return function(space, space.schedule(row), "measured", False)
        except Exception as error:  # refused by the compiler, as each checkout calls it
            refusal = error
    raise refusal


def as_tensor(torch: Any, array: Any) -> Any:
    """Return a CUDA tensor with the array's elements and strides."""
    kinds = {"bfloat16": torch.bfloat16}
    bits = array.view("int16") if array.dtype.name in kinds else array
    tensor = torch.from_numpy(bits).cuda()
    return tensor.view(kinds[array.dtype.name]) if array.dtype.name in kinds else tensor


def timer(kind: str, function: Any, inputs: list[Any]) -> Callable[[int], float]:
    """Takes a number of calls to the seconds of one: CPU time, or a GPU's, on warm caches."""
    out = function(*inputs)
    if kind == "cpu":

        def on_cpu(calls: int) -> float:
            begun = time.process_time()
            for _ in range(calls):
                function(*inputs, out=out)
            return (time.process_time() - begun) / calls

        return on_cpu
    import torch

    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(10):
            function(*inputs, out=out)

    def on_gpu(calls: int) -> float:
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        graph.replay()
        first.record()
        for _ in range(max(1, calls // 10)):
            graph.replay()
        last.record()
        last.synchronize()
        return float(first.elapsed_time(last)) * 1e-3 / (10 * max(1, calls // 10))

    return on_gpu


def serve(kind: str) -> None:
    """Answer the requests on standard input until it ends."""
    ask: Callable[[int], float] | None = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "build" in request:
                function, inputs = built(kind, *request["build"])
                ask = timer(kind, function, inputs)
                answer: Any = function.schedule.to_json()
            else:
                assert ask is not None
                answer = ask(request["time"])
        except Exception as error:  # said by the other end, with the case
            answer = {"error": f"{type(error).__name__}: {error}"[:500]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
