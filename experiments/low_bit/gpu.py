"""Products with weights of few bits on a GPU: searched side by side, then timed beside torch.

Each time is that of a launch in a CUDA graph of many, one for each copy of the weights: together
the copies are many times the L2, so that every launch reads its weights from memory.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import ceil
from statistics import median
from typing import Any

import numpy as np
import torch

from experiments.low_bit.formats import BIAS, GPU_NAMES, Format
from experiments.models.choosing import build, kernels, process_pool, spaces
from experiments.models.gpu import FIRST, FURTHER, PARENTS, search
from experiments.models.known import OWN, Known
from experiments.operators.exploring.explore import Explorer
from experiments.operators.summary import spread
from experiments.recorded import recorded_schedule
from experiments.resuming import resume, write
from tilewright import Workload, detect_target, pack
from tilewright.measure.cuda.launching import entry_point, load_functions, prepare
from tilewright.measure.interfaces import Built
from tilewright.scheduler.torch.backend.replays import replayed
from tilewright.scheduler.turns import rounds
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.kernel import WORKSPACE
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule

SHAPES = tuple(f"{m}x{n}" for m in (1, 8, 4) for n in ("28672x8192", "8192x28672"))
FORMATS = GPU_NAMES
SECONDS = 20.0
"""Seconds of search of each format."""
KIND = "bfloat16"
"""The dtype of activations, scales and outputs."""
SLACK = 2e-2
"""Allowed error beside the rounding of an output, as a share of the outputs' mean: weights may be
rounded to 16 bits."""
COLD_BYTES, MOST_COPIES = 600 << 20, 64
COPIED = 1 << 30
"""Bytes of the plain copy that gives the bandwidth."""
FINALISTS, HEAT, SETTLING = 3, 1.0, 8.0
"""Schedules of each product that are timed in turns; seconds of work before that, and of all that
comes after a search."""
Shape = tuple[int, int, int]
Inputs = Sequence[Sequence[torch.Tensor]]
MM, INT4, COPY = "torch mm bfloat16", "torch int4", "copy"


def main(asked: argparse.Namespace) -> None:
    """Compare all formats for each shape."""
    compare(asked, Contest, BESIDE)


def compare(asked: argparse.Namespace, kind: type[Contest], beside: Mapping[str, str]) -> None:
    """Compare all formats for each shape by contests of a kind, and write the results after each of
    these; ``beside`` is as :data:`BESIDE`."""
    end = time.monotonic() + 60 * asked.minutes
    target = detect_target("cuda")
    assert isinstance(target, CudaTarget)
    facts = {"target": target.to_json(), "torch": torch.__version__}
    results = resume(asked.out, "experiments.low_bit", facts, rows="shapes")
    left = [(shape, names) for shape in asked.shape if (names := _missing(results, shape, asked))]
    with process_pool(asked.jobs) as processes:
        for number, (text, names) in enumerate(left):
            share = (end - time.monotonic()) / (len(left) - number)
            seconds = min(share - SETTLING, asked.seconds * len(names))
            if seconds <= 0:
                return
            contest = kind(text, names, target, known_of(results), asked.rounds)
            found = contest.run(processes, time.monotonic() + seconds)
            row = results["shapes"].setdefault(text, {"formats": {}})
            row["formats"] |= found.pop("formats")
            row |= found
            write(asked.out, results, partial(table, beside=beside))
            print(*_lines(text, row, beside), sep="\n", flush=True)
            torch.cuda.empty_cache()


def _missing(results: Mapping[str, Any], shape: str, asked: argparse.Namespace) -> list[str]:
    there = results["shapes"].get(shape, {"formats": {}})["formats"]
    return [name for name in asked.dtypes if name not in there]


def known_of(results: Mapping[str, Any]) -> Known:
    """Return the fastest schedules of each format, those of the last shape first."""
    fast: dict[str, list[Schedule]] = {}
    for row in reversed(results["shapes"].values()):
        for name, found in row["formats"].items():
            own = [recorded_schedule(each["schedule"]) for each in found["explored"][:OWN]]
            fast[name] = fast.get(name, []) + own
    return Known(fast)


# -- one product -----------------------------------------------------------------------------------


def drawn(
    form: Format, shape: Shape, device: str = "cuda"
) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Return random inputs of a product by name, and its exact output in float64."""
    m, n, k = shape
    values = dtype(form.dtype).values - form.zero
    finite = torch.from_numpy(np.flatnonzero(np.isfinite(values)).astype("u1")).to(device)
    codes = finite[torch.randint(len(finite), (n, k), device=device)]
    a, d = torch.randn(m, k, device=device).to(torch.bfloat16), torch.ones(m, device=device)
    if form.has_bytes:
        a = torch.randint(-127, 128, (m, k), device=device, dtype=torch.int8)
        d = (1 + torch.rand(m, device=device)) / 64
    groups = (k // form.group, n)
    if form.has_powers:
        s = torch.randint(BIAS - 7, BIAS + 1, groups, device=device, dtype=torch.uint8)
        scales = torch.exp2(s.double() - BIAS)
    else:
        s = ((1 + torch.rand(groups, device=device)) / 64).to(torch.bfloat16)
        scales = s.double()
    weights = torch.from_numpy(values).to(device)[codes.int()].view(n, k // form.group, form.group)
    weights *= scales.t().unsqueeze(2)
    tensors = {"a": a, "q": pack(codes, form.dtype), "s": s, "d": d}
    return tensors, a.double() @ weights.view(n, k).t() * d.double().unsqueeze(1)


@dataclass(frozen=True)
class Loaded:
    """A kernel on the GPU, with room for its workspace."""

    built: Built
    functions: Sequence[Any]
    room: torch.Tensor
    output: torch.Tensor

    @staticmethod
    def of(built: Built, output: torch.Tensor) -> Loaded:
        """Load a kernel that writes this output."""
        call, binary = built.candidate.kernel.call, built.binary
        assert isinstance(binary, bytes)
        room = torch.zeros(call.workspace_bytes, device="cuda", dtype=torch.uint8)
        return Loaded(built, load_functions(binary, call, 0), room, output)

    def queue(self, inputs: Sequence[torch.Tensor]) -> None:
        """Queue a launch on the current stream; inputs are in the order of the workload."""
        call = self.built.candidate.kernel.call
        tensors = [*inputs, self.output]
        names = [array.name for array in call.arrays]
        addresses = {n: each.data_ptr() for n, each in zip(names, tensors, strict=True)}
        addresses |= {WORKSPACE: self.room.data_ptr()}
        stream, start = torch.cuda.current_stream().cuda_stream, entry_point("cuLaunchKernelEx")
        for each in prepare(call, self.functions, addresses, stream):
            status = start(*each.pointers, None)
            assert status == 0, f"the launch of {call.entry} gives {status}"


class Tuned:
    """A product with weights of one format: its search, and then its fastest kernels."""

    def __init__(
        self,
        name: str,
        workload: Workload,
        given: tuple[Mapping[str, torch.Tensor], torch.Tensor],
        target: CudaTarget,
        known: Known,
    ) -> None:
        self.name, self.target, self.known, self.workload = name, target, known, workload
        tensors, exact = given
        self.tensors = {array.name: tensors[array.name] for array in self.workload.inputs}
        space = space_for(self.workload, target)
        self.explorer = Explorer(space, self.tensors, [exact], slack=SLACK)
        self.bytes = workload.least_bytes
        self.built: dict[Schedule, Built] = {}
        self.turns = 0

    def ask(self, processes: Executor) -> Future[list[Built]]:
        """Return the next schedules, on their way."""
        parents, self.turns = self.explorer.best[:PARENTS], self.turns + 1
        product = (self.workload, self.target)
        if parents:
            return processes.submit(neighbours, *product, parents, set(self.built), self.turns)
        return processes.submit(build, *product, (), FIRST, self.turns, self.known, self.name)

    def tell(self, found: Sequence[Built]) -> None:
        """Judge and time what is new."""
        for built in found:
            schedule = built.candidate.schedule
            if schedule not in self.built:
                self.built[schedule] = built
                self.explorer.judge(built)

    def calls(self, inputs: Inputs) -> dict[int, Callable[[], float]]:
        """Return timers of the fastest kernels with each of ``inputs``, by their place."""
        output = torch.empty(self.workload.outputs[0].shape, device="cuda", dtype=torch.bfloat16)
        best = (self.built[schedule] for schedule in self.explorer.best[:FINALISTS])
        kernels = [Loaded.of(built, output) for built in best]
        return {n: replayed(kernel.queue, inputs) for n, kernel in enumerate(kernels)}

    def row(self, times: Mapping[int, Sequence[float]]) -> dict[str, Any]:
        """Return what the results have, with the ``times`` of the fastest kernels."""
        seconds = self.explorer.seconds
        explored = [{"us": 1e6 * seconds[s], "schedule": s.to_json()} for s in self.explorer.best]
        found: dict[str, Any] = {
            "bytes": self.bytes,
            "turns": self.turns,
            "outcomes": dict(self.explorer.outcomes),
        }
        if times:
            best = min(times, key=lambda number: median(times[number]))
            found |= _spread(times[best]) | {"schedule": explored[best]["schedule"]}
        return found | {"explored": explored[:OWN]}


def neighbours(
    workload: Workload,
    target: CudaTarget,
    parents: Sequence[Schedule],
    tried: Collection[Schedule],
    seed: int,
) -> list[Built]:
    """Return built kernels of neighbours of the fastest schedules, chosen at random, and of random
    schedules once all neighbours were tried."""
    space, generator = spaces(workload, target), np.random.default_rng(seed)
    near = generator.permutation(space.neighbours(space.rows(parents), generator))
    rows = np.concatenate([near, space.sample(generator, FURTHER)])
    new = (schedule for row in rows if (schedule := space.schedule(row)) not in tried)
    return kernels(space, islice(new, FURTHER))


def copies_of(tensors: Sequence[torch.Tensor]) -> Inputs:
    """Return so many copies of tensors that no cache has any when its turn comes again."""
    size = sum(each.nbytes for each in tensors)
    count = min(max(2, ceil(COLD_BYTES / size)), MOST_COPIES)
    return [tensors, *([each.clone() for each in tensors] for _ in range(count - 1))]


# -- all formats of a shape ------------------------------------------------------------------------


@dataclass(frozen=True)
class Contest:
    """The products of a shape with weights of all formats called ``names``, and their rivals."""

    text: str
    names: Sequence[str]
    target: CudaTarget
    known: Known
    rounds: int

    @property
    def shape(self) -> Shape:
        """Rows, columns and depth."""
        m, n, k = map(int, self.text.split("x"))
        return m, n, k

    def tuned(self, name: str) -> Tuned:
        """Return the product with weights of a format, with random inputs."""
        form = Format(name)
        asked = form.product(*self.shape, KIND)
        return Tuned(name, asked, drawn(form, self.shape), self.target, self.known)

    def rivals(self) -> dict[str, Callable[[], Callable[[], float]]]:
        """Return makers of timers of what the products are compared with."""
        return rivals(self.shape)

    def inputs(self, tuned: Tuned) -> Inputs:
        """Return the inputs that launches of a product take in turns."""
        return copies_of(list(tuned.tensors.values()))

    def run(self, processes: Executor, end: float) -> dict[str, Any]:
        """Search until ``end`` (of ``time.monotonic``), then time in turns: rows of the results."""
        tuned: list[Tuned] = []

        def made() -> Iterator[Tuned]:
            for name in self.names:
                tuned.append(self.tuned(name))
                yield tuned[-1]

        search(made(), processes, end)
        calls: dict[Any, Callable[[], float]] = {}
        missing: dict[str, str] = {}
        for name, make in self.rivals().items():
            try:
                calls[name] = make()
            except (AttributeError, RuntimeError) as error:
                missing[name] = str(error).splitlines()[0]
        others = list(calls)
        for each in tuned:
            made = each.calls(self.inputs(each))
            calls |= {(each.name, place): call for place, call in made.items()}
        times = in_turns(calls, self.rounds)
        rows = {}
        for each in tuned:
            own = {n: times[each.name, n] for n in range(FINALISTS) if (each.name, n) in times}
            rows[each.name] = each.row(own)
        spreads = {name: _spread(times[name]) for name in others}
        return {"rivals": spreads, "missing": missing, "formats": rows}


def rivals(shape: Shape) -> dict[str, Callable[[], Callable[[], float]]]:
    """Return makers of timers of what the products are compared with."""
    m, n, k = shape
    x = torch.randn(m, k, device="cuda").to(torch.bfloat16)

    def mm() -> Callable[[], float]:
        weight = torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
        out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        return replayed(lambda each: torch.mm(x, each[0].t(), out=out), copies_of([weight]))

    def int4() -> Callable[[], float]:
        codes = torch.randint(256, (n, k // 2), device="cuda", dtype=torch.uint8)
        weight = torch.ops.aten._convert_weight_to_int4pack(codes, 8)
        scales = torch.rand(k // 128, n, 2, device="cuda").to(torch.bfloat16)
        multiply = torch.ops.aten._weight_int4pack_mm
        call = lambda each: multiply(x, each[0], 128, each[1])  # noqa: E731
        return replayed(call, copies_of([weight, scales]))

    def copy() -> Callable[[], float]:
        source = torch.ones(COPIED, device="cuda", dtype=torch.uint8)
        to = torch.empty_like(source)
        return replayed(lambda _: to.copy_(source), [[source]])

    return {MM: mm, INT4: int4, COPY: copy}


def in_turns(calls: Mapping[Any, Callable[[], float]], count: int) -> dict[Any, list[float]]:
    """Return the times that timers answer with in so many shuffled rounds, on a GPU at work."""
    begin = time.monotonic() + HEAT
    while time.monotonic() < begin:
        for call in calls.values():
            call()
    found = rounds(list(calls.values()), count, 0.0)
    return {name: [each[place] for each in found] for place, name in enumerate(calls)}


def _spread(times: Sequence[float]) -> dict[str, Any]:
    """Return the median, the least time and the quartiles in seconds."""
    return {key: found["time"] for key, found in spread({"time": times}).items()}


# -- what is shown ---------------------------------------------------------------------------------

HEAD = ("format", "us", "least us", "GB/s", "of a copy")
BESIDE = {"mm over ours": MM, "int4 over ours": INT4}
"""Rivals by the headings of columns in which their times are divided by ours."""


def table(results: Mapping[str, Any], beside: Mapping[str, str] = BESIDE) -> str:
    """Return the results as tables of Markdown."""
    lines = [f"Measured on {results['date']} by `{results['command']}`; medians."]
    head = (*HEAD, *beside)
    for shape, row in results["shapes"].items():
        lines += ["", f"### {shape}", "", f"| {' | '.join(head)} |", "| --- " * len(head) + "|"]
        lines += [f"| {' | '.join(cells)} |" for cells in _cells(row, beside)]
    return "\n".join(lines) + "\n"


def _lines(shape: str, row: Mapping[str, Any], beside: Mapping[str, str]) -> list[str]:
    cells = ((*HEAD, *beside), *_cells(row, beside))
    return [shape, *("  ".join(f"{cell:>16}" for cell in each) for each in cells)]


def _cells(row: Mapping[str, Any], beside: Mapping[str, str]) -> Iterator[list[str]]:
    others = {name: found["median_s"] for name, found in row["rivals"].items()}
    rate = 2 * COPIED / others[COPY] if COPY in others else None
    for name, found in (row["rivals"] | row["formats"]).items():
        if "median_s" not in found:
            yield [name, *("-" for _ in (*HEAD[1:], *beside))]
            continue
        own = found["median_s"]
        moved = 2 * COPIED if name == COPY else found.get("bytes")
        cells = [name, f"{1e6 * own:.1f}", f"{1e6 * found['least_s']:.1f}"]
        cells += [f"{moved / own / 1e9:.0f}" if moved else "-"]
        cells += [f"{moved / own / rate:.3f}" if moved and rate else "-"]
        is_ours = name in row["formats"]
        rivals = beside.values()
        cells += [f"{others[n] / own:.2f}" if is_ours and n in others else "-" for n in rivals]
        yield cells
