"""Shows what a candidate that crashes or hangs does to a run of Kernel Tuner and of ours.

    python -m experiments.kernel_tuner_peer --peer .kernel-tuner/bin/python [--limit 300]

``--peer`` is a Python with the packages of ``requirements.txt``. Writes ``results.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from tilewright.measure.cluster.executor import RayExecutor
from tilewright.measure.executor import LocalExecutor
from tilewright.measure.interfaces import Executor
from tilewright.measure.records.measurement import Candidate, Job
from tilewright.spaces.cpu.abi import ABI_PRELUDE
from tilewright.spaces.kernel import Call, Kernel, Source, arguments
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import detect_target

HERE = Path(__file__).parent
WAYS, WRONG = 8, 5
CASES = {"none": (-1, -1), "one crashes": (WRONG, -1), "one hangs": (-1, WRONG)}
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # loopback
RUNNERS = ("sequential", "parallel", "released")  # see theirs.py
OURS: dict[str, Callable[[], Executor]] = {
    "local": lambda: LocalExecutor(detect_target("cpu")),
    "ray": RayExecutor,
}
GRACE = 60.0  # seconds for a run that is ended to take its processes along


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", type=Path, required=True)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds of each run of theirs")
    parser.add_argument("--case", choices=CASES, action="append", help="all, if none is named")
    parser.add_argument("--out", type=Path, default=HERE / "results.json")
    options = parser.parse_args()
    peer = options.peer.absolute()  # not what it links to
    report: dict[str, Any] = json.loads(options.out.read_text()) if options.out.exists() else {}
    for case in options.case or CASES:
        crashing, hanging = CASES[case]
        report[case] = {
            "date": time.strftime("%Y-%m-%d"),
            "command": "python -m experiments.kernel_tuner_peer " + shlex.join(sys.argv[1:]),
            "machine": f"{detect_target('cpu').summary}, {os.cpu_count()} CPUs",
            "versions": {"python": platform.python_version(), **_versions(peer)},
            "kernel tuner": {
                runner: _theirs(peer, runner, crashing, hanging, options.limit)
                for runner in RUNNERS
            },
            "tilewright": {name: _ours(make, crashing, hanging) for name, make in OURS.items()},
        }
        options.out.write_text(json.dumps(report, indent=1) + "\n")
        print(json.dumps({case: report[case]}), flush=True)


def _versions(python: Path) -> dict[str, str]:
    code = (
        "import json; from importlib.metadata import version;"
        "print(json.dumps({n: version(n) for n in ('kernel_tuner', 'ray', 'numpy')}))"
    )
    return json.loads(subprocess.check_output([python, "-c", code], env=_clean()))


def _clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def _theirs(python: Path, runner: str, crashing: int, hanging: int, limit: float) -> dict[str, Any]:
    """Return how a run of theirs ended, and how many candidates its cache kept."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        cache, log = Path(folder) / "cache.json", Path(folder) / "log"
        with log.open("w") as output:
            process = subprocess.Popen(
                [python, HERE / "theirs.py", runner, str(crashing), str(hanging), cache],
                cwd=folder,
                env=_clean() | QUIET,
                stdout=output,
                stderr=output,
            )
            ended = _ended(process, limit)
        seconds, kept, words = time.monotonic() - began, len(_kept(cache)), _last_words(log)
        _end(process)
        return {"ended": ended, "seconds": round(seconds, 1), "kept": kept, "last words": words}


def _ended(process: subprocess.Popen, limit: float) -> str:
    try:
        code = process.wait(limit)
    except subprocess.TimeoutExpired:
        return f"not by itself within {limit:g} s"
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


def _end(process: subprocess.Popen) -> None:
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    process.kill()
    process.wait()


def _last_words(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    return next((line[:200] for line in reversed(lines) if line), "")


def _kept(cache: Path) -> list[str]:
    """Return the candidates of a cache file, which its writer may not have closed."""
    if not cache.exists():
        return []
    text = cache.read_text().rstrip().rstrip(",")
    with suppress(ValueError):
        return list(json.loads(text)["cache"])
    return list(json.loads(text + "}}")["cache"])


def _ours(make: Callable[[], Executor], crashing: int, hanging: int) -> dict[str, Any]:
    """Run a candidate of each kind: the outcomes."""
    began = time.monotonic()
    job = Job("ways", workload("matmul", m=64, n=64, k=512), detect_target("cpu"))
    made = [_candidate(job, way, crashing, hanging) for way in range(WAYS)]
    outcomes: dict[str, list[int]] = {}
    with closing(make()) as executor:
        executor.submit(job, made)
        while executor.pending():
            for result in executor.results(1.0):
                m = result.measurement
                told = str(m.error_kind or m.status)
                outcomes.setdefault(told, []).append(int(str(m.schedule["way"])))
    return {
        "seconds": round(time.monotonic() - began, 1),
        "outcomes": {told: sorted(ways) for told, ways in outcomes.items()},
    }


def _candidate(job: Job, way: int, crashing: int, hanging: int) -> Candidate:
    numbers = f"enum {{ way = {way}, crashing = {crashing}, hanging = {hanging} }};"
    head = f"void way{way}(void *const *buffers, void *workspace, const tw_runtime *runtime)"
    operands = "const float *A = buffers[0], *B = buffers[1]; float *C = buffers[2];"
    source = f"{head} {{\n{numbers}\n{operands}\n{(HERE / 'product.c').read_text()}}}\n"
    call = Call(f"way{way}", arguments(job.workload.inputs, job.workload.outputs))
    kernel = Kernel(Source("c", ABI_PRELUDE, source), call)
    return Candidate(job, Schedule("written", (("way", way),)), kernel)


if __name__ == "__main__":
    main()
