"""Kernels that are built once, and timed when the machine has nothing else to do."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tilewright.measure.cpu.builder import CBuilder
from tilewright.measure.interfaces import Built
from tilewright.measure.records.measurement import Candidate, Job, new_job_id
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.space import Space

TOGETHER = 64
"""Kernels that are built before they are entered into the index."""


@dataclass(frozen=True)
class Kernels:
    """The kernels of all schedules of a ``space`` of a CPU, in ``folder`` with an index.

    The index names them by their source, so that what was built of others is not found.
    """

    space: Space
    folder: Path

    def build(self) -> int:
        """Build those that are not there yet, one compiler at a time; how many had to be built."""
        assert isinstance(self.space.target, CpuTarget)
        self.folder.mkdir(parents=True, exist_ok=True)
        known = self._known()
        missing = (each for each in self._candidates() if _digest(each.kernel) not in known)
        builder, count = CBuilder(self.space.target), 0
        try:
            while some := list(islice(missing, TOGETHER)):
                self._keep(builder.build(some))
                count += len(some)
        finally:
            builder.close()
        return count

    def built(self) -> list[Built]:
        """Return the schedules whose kernels are there, in the order of the space."""
        known = self._known()
        found = ((each, known.get(_digest(each.kernel))) for each in self._candidates())
        return [
            Built(each, self.folder / there["file"], there["seconds"], toolchain=there["toolchain"])
            for each, there in found
            if there
        ]

    def _candidates(self) -> Iterator[Candidate]:
        job = Job(new_job_id(), self.space.workload, self.space.target)
        rows = (row for block in self.space.blocks() for row in block)
        schedules = map(self.space.schedule, rows)
        return (Candidate(job, each, self.space.lower(each)) for each in schedules)

    @property
    def _index(self) -> Path:
        return self.folder / "index.jsonl"

    def _known(self) -> dict[str, dict]:
        lines = self._index.read_text().splitlines() if self._index.exists() else []
        return {entry["kernel"]: entry for entry in map(json.loads, lines)}

    def _keep(self, made: Sequence[Built]) -> None:
        files = {built.binary: f"{_digest(built.candidate.kernel)}.so" for built in made}
        for binary, file in files.items():
            assert isinstance(binary, Path), made[0].error_text
            shutil.copyfile(binary, self.folder / file)
        entries = (
            {
                "kernel": _digest(built.candidate.kernel),
                "file": files[built.binary],
                "seconds": built.seconds,
                "toolchain": built.toolchain,
            }
            for built in made
        )
        with self._index.open("a") as index:
            index.writelines(json.dumps(entry) + "\n" for entry in entries)


def _digest(kernel: Kernel) -> str:
    return hashlib.sha256(kernel.source.text.encode()).hexdigest()[:32]
