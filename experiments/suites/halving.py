"""Model how much slower than the best a comparison's winner is, by a search and its finalists.

    python -m experiments.suites.halving [--drawings 1000]

Of 900 schedules the logarithm of the latency is .18 times the cube root of a uniform number. A
search is off by a normal error, and by another that changes slowly with the time, as a busy machine
does. Finalists are in turn the best of all and of the later half. They are halved until one is
left: those who go on are compared so many times, by comparisons that are off by a normal error,
too, and the sum of all ranks. Prints the mean regret in percent, by how many times that is (0: as
often as makes each field cost as much as the first).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

from tilewright.spaces.algebra.sequences import in_turn

SCHEDULES, BATCH = 900, 16
SCALE, POWER = 0.18, 1 / 3
STAYS = 0.9  # of a slow change from one batch to the next
SEARCH, COMPARISON = 0.02, 0.02  # standard deviations, of logarithms
CHANGES = (0.03, 0.08)
COMPARISONS = (60, 120, 240)
TIMES = (1, 2, 0)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.suites.halving")
    parser.add_argument("--drawings", type=int, default=1000)
    drawings = parser.parse_args().drawings
    generator = np.random.default_rng(0)
    for change in CHANGES:
        for most in COMPARISONS:
            for times in TIMES:
                count = finalists(most, times)
                found = [regret(count, times, change, generator) for _ in range(drawings)]
                print(
                    f"change {change}, {most} comparisons: {count} finalists, {times} times: "
                    f"{100 * np.mean(found):.2f} +- {100 * np.std(found) / drawings**0.5:.2f} %"
                )


def fields(count: int, times: int) -> Iterator[tuple[int, int]]:
    """Yield how many are compared, and how often, until one is left."""
    first = count
    while count > 1:
        yield count, 1 if count == first else times or first // count
        count = (count + 1) // 2


def finalists(most: int, times: int) -> int:
    """Return the most finalists that so many comparisons of one schedule allow."""
    fitting = (n for n in range(2, most) if sum(a * b for a, b in fields(n, times)) <= most)
    return max(fitting)


def regret(count: int, times: int, change: float, generator: np.random.Generator) -> float:
    """Return the relative loss by who wins among so many finalists."""
    true = SCALE * generator.random(SCHEDULES) ** POWER
    seen = true + SEARCH * generator.standard_normal(SCHEDULES) + _slowness(change, generator)
    ranked = np.argsort(seen)
    later = ranked[ranked >= SCHEDULES // 2]
    left = np.array(list(dict.fromkeys(in_turn([ranked, later])))[:count])
    total = np.zeros(SCHEDULES)
    for size, often in fields(count, times):
        off = COMPARISON * generator.standard_normal((often, size))
        total[left] += often * true[left] + off.sum(axis=0)
        left = left[np.argsort(total[left])][: (size + 1) // 2]
    return float(true[left[0]] - true.min())


def _slowness(change: float, generator: np.random.Generator) -> np.ndarray:
    """Return the slowness of the machine at each trial: an autoregressive process over batches."""
    level, levels = 0.0, []
    for _ in range(SCHEDULES // BATCH + 1):
        levels.append(level)
        level = STAYS * level + change * (1 - STAYS**2) ** 0.5 * generator.standard_normal()
    return np.repeat(levels, BATCH)[:SCHEDULES]


if __name__ == "__main__":
    main()
