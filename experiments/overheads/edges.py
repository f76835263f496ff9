"""The share of a run that goes into edge inputs, other tables and sums of few terms.

    python -m experiments.overheads.edges [--trials 256] [--repeats 3] [--out FILE]

Tunes workloads with edges on this CPU, one thread, each from an empty database, and times all calls
of kernels on further inputs, with what it takes to draw these and to work out what is allowed of
them. Writes ``edges.json``.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from experiments.overheads.results import with_facts, write
from tilewright.measure.cpu.runner import CRunner
from tilewright.measure.cpu.session import CandidateReport
from tilewright.measure.database import Database
from tilewright.measure.drawing.further_draws import count_further_draws
from tilewright.measure.executor import LocalExecutor
from tilewright.measure.interfaces import Built
from tilewright.measure.records.measurement import Job
from tilewright.scheduler.tuning.tuner import Tuner
from tilewright.spaces.cpu.target import detect_cpu
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.operators import workload

WORKLOADS = (
    "matmul m=512 n=512 k=512",
    'matmul m=512 n=512 k=512 epilogue="gelu(x + bias[n])"',
    "matmul m=128 n=256 k=64",
    "matmul m=1 n=4096 k=4096",
    "conv2d n=1 c=64 h=56 w=56 o=64 r=3 s=3 padding=1 layout=NHWC",
    "grouped_matmul t=512 n=256 k=256 experts=8",
    "softmax r=512 c=1000",
    "layernorm r=512 c=1024",
    "attention b=1 h=4 i=256 j=256 d=64 mask=causal",
)


class TimedRunner(CRunner):
    """A runner that adds up the ``seconds`` of further inputs."""

    seconds = 0.0

    def _judge_on_others(
        self,
        job: Job,
        group: Sequence[Built],
        records: Sequence[CandidateReport],
        own: Sequence[int],
        numerics: Numerics,
    ) -> None:
        start = time.monotonic()
        super()._judge_on_others(job, group, records, own, numerics)
        self.seconds += time.monotonic() - start


def run(text: str, trials: int) -> dict[str, float]:
    """Return the seconds of one run, of further inputs alone, and the candidates measured."""
    target, work = detect_cpu(1), workload(text)
    runner = TimedRunner(target)
    with (
        tempfile.TemporaryDirectory() as folder,
        Database(f"{folder}/db.sqlite") as database,
        closing(LocalExecutor(target, runner=runner)) as executor,
    ):
        result = Tuner(work, target, database, executor).run(trials, seconds=600)
    return {"trials": result.trials, "seconds": result.seconds, "others": runner.seconds}


def measured(text: str, trials: int, repeats: int) -> dict[str, Any]:
    """Medians over the runs of one workload."""
    runs = [run(text, trials) for _ in range(repeats)]
    ratios = [r["seconds"] / (r["seconds"] - r["others"]) for r in runs]
    return {
        "workload": text,
        "problems": count_further_draws(workload(text)),
        "trials": statistics.median(r["trials"] for r in runs),
        "seconds": round(statistics.median(r["seconds"] for r in runs), 2),
        "seconds_of_others": round(statistics.median(r["others"] for r in runs), 2),
        "ratio": round(statistics.median(ratios), 4),
        "ratios": [round(ratio, 4) for ratio in sorted(ratios)],
    }


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m experiments.overheads.edges")
    parser.add_argument("--trials", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("edges.json"))
    options = parser.parse_args()
    found = [measured(text, options.trials, options.repeats) for text in WORKLOADS]
    write(options.out, with_facts(found))


if __name__ == "__main__":
    main()
