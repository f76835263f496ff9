"""Kernel Tuner on all ways of ``product.c``; runs in an environment of its own.

    python theirs.py sequential|parallel|released CRASHING HANGING CACHE

The two numbers name the way that crashes or hangs, -1 for none. Prints what it returned as JSON.
``released`` is the parallel runner as it comes: in 1.5.0 it ends at the first result of any run,
for it looks one up by a list of objectives. ``parallel`` is the same with a list that can be a key.
"""

import json
import sys
from pathlib import Path

import kernel_tuner
import numpy as np

WAYS, WORKERS = 8, 2
HEAD = """
#include <time.h>
float product(float *C, const float *A, const float *B) {
struct timespec begun, ended;
clock_gettime(CLOCK_MONOTONIC, &begun);
"""
TAIL = """
clock_gettime(CLOCK_MONOTONIC, &ended);
return 1e3 * (ended.tv_sec - begun.tv_sec) + 1e-6 * (ended.tv_nsec - begun.tv_nsec);
}
"""


def main() -> None:
    runner, crashing, hanging, cache = sys.argv[1:]
    statements = Path(__file__).with_name("product.c").read_text()
    generator = np.random.default_rng(0)
    a, b = (generator.random(64 * 512, np.float32) for _ in range(2))
    if runner != "sequential":
        import ray

        if runner == "parallel":
            _mend()
        # a worker asks for a GPU, whatever it measures on
        ray.init("local", num_cpus=WORKERS, num_gpus=WORKERS, include_dashboard=False)
    results, _ = kernel_tuner.tune_kernel(
        "product",
        HEAD + statements + TAIL,
        1,
        [np.zeros(64 * 64, np.float32), a, b],
        {"way": list(range(WAYS)), "crashing": [int(crashing)], "hanging": [int(hanging)]},
        lang="C",
        compiler_options=["-O2"],
        cache=cache,
        parallel=None if runner == "sequential" else WORKERS,
    )
    ways = {result["way"]: isinstance(result["time"], float) for result in results}
    print(json.dumps({"returned": len(ways), "measured": sum(ways.values())}))


class Objectives(list):
    """A list that may be a key."""

    def __hash__(self) -> int:
        return hash(tuple(self))


def _mend() -> None:
    from kernel_tuner.runners.parallel import ParallelRunner

    run = ParallelRunner.run

    def mended(self, space, options):
        options.objective = Objectives(options.objective)
        return run(self, space, options)

    ParallelRunner.run = mended


if __name__ == "__main__":
    main()
