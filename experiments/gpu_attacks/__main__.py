"""Attack the runner of this machine's GPU, and print what became of each kernel as JSON.

    python -m experiments.gpu_attacks [--kills 20] [--seconds 110]

Harmful kernels (:mod:`experiments.gpu_attacks.kernels`) are measured beside right ones, in one
batch, tried again as executors do it; then the measuring process is killed at random moments of
``--kills`` runs, as far as ``--seconds`` reach. Each kernel must get its right record every time.
Ends with 0 if all did, else with 1.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from experiments.gpu_attacks.kernels import GOOD, HARMFUL, WRONG, Attack
from tilewright.measure import retrying
from tilewright.measure.cuda.nvrtc import NvrtcBuilder
from tilewright.measure.cuda.runner import CudaRunner
from tilewright.measure.interfaces import Builder
from tilewright.measure.records.measurement import Measurement
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.target import detect_target

HANG_SECONDS = 3.0  # a call that takes longer hangs: the right ones take microseconds


class Attackers:
    """A runner, and the built kernels that are to harm it."""

    def __init__(self, target: CudaTarget, runner: CudaRunner, builder: Builder) -> None:
        self.target, self.runner, self.builder = target, runner, builder

    def records(self, attacks: Sequence[Attack]) -> dict[str, Measurement]:
        """Return the final record of each, by name."""
        built = self.builder.build([attack.candidate(self.target) for attack in attacks])
        records = {b.candidate.kernel.call.entry: b.failure() for b in built if b.binary is None}
        ready = [b for b in built if b.binary is not None]
        for results in retrying.run(self.runner.run, built[0].candidate.job, ready):
            for result in results:
                name = result.candidate.kernel.call.entry
                assert name not in records, f"{name} has two records"
                records[name] = result.measurement
        return records

    def mixed(self, attacks: Sequence[Attack]) -> list[dict[str, Any]]:
        """Run ``attacks`` with right kernels before, between and after them: all outcomes."""
        middle = len(attacks) // 2
        batch = [GOOD[0], *attacks[:middle], GOOD[1], *attacks[middle:], GOOD[2]]
        records = self.records(batch)
        return [_line(attack, records[attack.name]) for attack in batch]

    def killed(self, most: int, until: float, seed: int = 0) -> dict[str, Any]:
        """Return how many of ``most`` runs in which the child was killed once had the right
        records."""
        batch, generator = (GOOD[0], WRONG, GOOD[1]), random.Random(seed)
        start = time.monotonic()
        self.records(batch)
        usual = time.monotonic() - start
        runs = right = 0
        while runs < most and time.monotonic() < until:
            killer = threading.Timer(generator.uniform(0, usual), self._kill)
            killer.start()
            records = self.records(batch)
            killer.join()
            runs += 1
            right += all(_line(attack, records[attack.name])["right"] for attack in batch)
        return {"usual_s": round(usual, 3), "runs": runs, "right": right}

    def _kill(self) -> None:
        process = self.runner._process
        if process is not None:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)


def _line(attack: Attack, record: Measurement) -> dict[str, Any]:
    found = None if record.error_kind is None else str(record.error_kind)
    wanted = None if attack.kind is None else str(attack.kind)
    return {
        "kernel": attack.name,
        "wanted": wanted or "ok",
        "found": found or str(record.status),
        "text": record.error_text,
        "right": found == wanted and not record.lost,
    }


def main() -> int:
    """Attack, print, say whether all went right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=110.0)
    asked = parser.parse_args()
    start = time.monotonic()
    target = detect_target("cuda")
    assert isinstance(target, CudaTarget)
    runner, builder = CudaRunner(target, least_seconds=HANG_SECONDS), NvrtcBuilder(target, jobs=8)
    attackers = Attackers(target, runner, builder)
    try:
        kernels = attackers.mixed(HARMFUL)
        mixed = time.monotonic() - start
        kills = attackers.killed(asked.kills, start + asked.seconds)
    finally:
        runner.close()
        builder.close()
    all_right = all(line["right"] for line in kernels) and kills["right"] == kills["runs"]
    outcome = {
        "device": target.summary,
        "date": datetime.date.today().isoformat(),
        "command": "python -m experiments.gpu_attacks " + " ".join(sys.argv[1:]),
        "kernels": kernels,
        "kernels_s": round(mixed, 1),
        "kills": kills,
        "seconds": round(time.monotonic() - start, 1),
        "right": all_right,
    }
    print(json.dumps(outcome, indent=1))
    return 0 if all_right else 1


if __name__ == "__main__":
    sys.exit(main())
