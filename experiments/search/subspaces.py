"""Measures every schedule of a part of our own CPU space, for searches to be replayed on it.

    python -m experiments.search.subspaces NAME --kernels FOLDER --build [--threads 1]
    python -m experiments.search.subspaces NAME --kernels FOLDER [--threads 1] [--seconds 240]
                                                [--out FILE.jsonl.gz]

The first builds the kernels, the second times what is built, on a machine that does nothing else.
NAME is one of ``SUBSPACES``. See README.md.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
from collections.abc import Mapping
from pathlib import Path
from time import time

from experiments.search.kernels import Kernels
from experiments.search.passes import PROTOCOL, timed
from experiments.search.results import RESULTS
from tilewright.measure.cpu.runner import CRunner
from tilewright.measure.records.jsonl import write_lines
from tilewright.measure.records.record import Record
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Value
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target, detect_target

Values = Mapping[str, tuple[Value, ...]]
"""The values of some decisions that are tried; the others have those of the space."""

SUBSPACES: Mapping[str, tuple[str, Values]] = {
    "128x768x3072": (
        "matmul m=128 n=768 k=3072",
        {"block_depth": (768,), "block_rows": (32, 128)},
    ),
    "16x4096x4096": (
        "matmul m=16 n=4096 k=4096",
        {
            "block_depth": (
                32,
                40,
                48,
                56,
                64,
                80,
                96,
                112,
                128,
                160,
                192,
                224,
                256,
                320,
                384,
                512,
            ),
            "prefetch": (1, 2, 3, 4),
            "unroll": (1, 2, 3, 4),
        },
    ),
}
"""The workload of each, m x n x k, and the values that are tried: of a large space some, of a small
one more than it has."""


def subspace(name: str, target: Target) -> Space:
    """Return the part of the workload's space, or the finer grid over it, that ``SUBSPACES``
    says."""
    text, values = SUBSPACES[name]
    space = space_for(workload(text), target)
    templates = [template.with_values(values) for template in space.templates.values()]
    return Space(space.workload, target, templates)


def record(kernels: Kernels, seconds: float, out: Path) -> str:
    """Write a record of each kernel that is built to ``out``; what there is to say of it."""
    space, built = kernels.space, kernels.built()
    assert isinstance(space.target, CpuTarget)
    runner = CRunner(space.target, protocol=PROTOCOL)
    try:
        measurements, repeatability = timed(runner, built, seconds)
    finally:
        runner.close()
    records = [
        Record(space.workload, space.target, space.version_of(m.schedule), m, recorded_at=time())
        for m in measurements
    ]
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "records.jsonl"
        write_lines(plain, [], records)
        out.write_bytes(gzip.compress(plain.read_bytes(), mtime=0))
    return f"{len(records)} of {space.count()} schedules on {space.target.summary}: {repeatability}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=list(SUBSPACES))
    parser.add_argument("--kernels", type=Path, required=True)
    parser.add_argument("--build", action="store_true", help="build the kernels, time none")
    parser.add_argument("--seconds", type=float, default=240.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    space = subspace(options.name, detect_target("cpu", options.threads))
    kernels = Kernels(space, options.kernels / options.name)
    if options.build:
        print(f"{options.name}: {kernels.build()} kernels built")
        return
    out = options.out or RESULTS / f"{options.name}.jsonl.gz"
    print(f"{options.name}: {record(kernels, options.seconds, out)}")


if __name__ == "__main__":
    main()
