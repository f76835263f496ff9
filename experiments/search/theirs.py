"""Kernel Tuner's search strategies on a recorded space; runs in an environment of its own.

    python theirs.py CACHE STRATEGY TRIALS SEED REPEATS

Prints a line of JSON for each run: the values of the configurations that it evaluated, each once,
in order. Failures stay in the space: whoever tunes meets them. Runs have the seeds SEED, SEED + 1,
and so on.
"""

import contextlib
import io
import json
import random
import sys

import numpy as np
from kernel_tuner import tune_kernel, util


def main() -> None:
    cache, strategy, trials, seed, repeats = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
    recorded = util.read_cache(cache, open_cache=False)
    for own in range(seed, seed + repeats):
        random.seed(own)
        np.random.seed(own)
        with contextlib.redirect_stdout(io.StringIO()):
            results = tuned(cache, recorded, strategy, trials)
        names = recorded["tune_params_keys"]
        visited = dict.fromkeys(tuple(result[name] for name in names) for result in results)
        print(json.dumps(list(visited)[:trials]), flush=True)


def tuned(cache: str, recorded: dict, strategy: str, trials: int) -> list[dict]:
    names = recorded["tune_params_keys"]
    known = {tuple(entry[name] for name in names) for entry in recorded["cache"].values()}
    results, _ = tune_kernel(
        **util.infer_args_from_cache(recorded),
        restrictions=[util.FunctionConstraint(lambda *values: values in known)],
        cache=cache,
        simulation_mode=True,
        strategy=strategy,
        strategy_options={"max_fevals": trials},
        quiet=True,
    )
    return results


if __name__ == "__main__":
    main()
