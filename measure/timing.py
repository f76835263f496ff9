"""The protocol for timing candidates on noisy machines: its numbers, and the score.

A candidate's first call is timed while it is checked. If it is far slower than the best so far, it
is cut short. The others are timed in shuffled rounds, so that a slow second of the machine affects
all of them alike. A sample spans at least ``sample_seconds`` of calls. The number of a candidate's
samples depends on its time and on whether it can still win. A reference kernel is timed in every
round as a drift alarm. On a CPU, each call on large arrays is a sample of its own, between other
work (:mod:`measure.cpu.cache_flush`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median, quantiles

Statistic = Callable[[Sequence[float]], float]
"""A latency in seconds by the samples of a kernel."""


@dataclass(frozen=True)
class TimingProtocol:
    """The numbers of the protocol. Times in seconds.

    ``slow_factor``: slower than this many times the best is cut short; ``cold_seconds`` are
    allowed on top for a first call. Calls of up to ``recheck_seconds`` are checked twice. Checked
    calls of 10 * ``sample_seconds`` and more count as samples: a cold start does not show in them.
    A candidate is sampled ``samples`` times at most, as long as it stays within ``budget``; one
    within ``contender_factor`` of the best is sampled ``contender_samples`` times in any case.
    A round whose reference kernel is ``drift`` slower than its median is repeated. Before the
    rounds the candidates are run for ``heat`` seconds.
    """

    slow_factor: float = 3.0
    cold_seconds: float = 0.5e-3
    recheck_seconds: float = 10e-3
    sample_seconds: float = 1e-3
    budget: float = 12e-3
    samples: int = 5
    contender_factor: float = 1.1
    contender_samples: int = 3
    drift: float = 0.1
    heat: float = 0.0


SEARCH = TimingProtocol()
"""The protocol of a search: a dozen milliseconds of timing a candidate."""

SEARCH_BY_WALL_CLOCK = replace(
    SEARCH, cold_seconds=8e-3, budget=20e-3, samples=15, contender_samples=5
)
"""The same where the clock runs on while another process has the core, for a time slice or two:
more samples, so that one of them is undisturbed."""

FINAL = TimingProtocol(
    slow_factor=math.inf,
    recheck_seconds=math.inf,
    budget=0.6,
    samples=25,
    contender_samples=5,
)
"""The protocol before one is declared best: 25 interleaved rounds; fewer, but at least 5 of the
contenders, where one call takes longer than 24 milliseconds."""


VERIFICATION = replace(FINAL, recheck_seconds=0.0, samples=0, contender_samples=0)
"""One call, which is checked and not timed."""


def protocol_for(clock: str, final: bool) -> TimingProtocol:
    """Return the protocol for a clock (``cpu`` or ``wall``), while searching or before the end."""
    if final:
        return FINAL
    return SEARCH_BY_WALL_CLOCK if clock == "wall" else SEARCH


def score(samples: Sequence[float]) -> float:
    """Return the latency that ranks: the least sample, in seconds.

    Disturbance only ever adds time, so the least of a few interleaved samples is nearest to the
    kernel's own; ``experiments/timing_noise`` compares it with the other statistics.
    """
    return min(samples)


def usual_score(samples: Sequence[float]) -> float:
    """Return the same where other work comes between calls, and of a final comparison by CPU time:
    the lower quartile, in seconds.

    What a call finds in the caches then differs from call to call, and the least sample is the one
    that found most. A clock of CPU time that runs a little late now and then makes one of 25
    samples too short by a tenth: where the candidates differ by less, who has that one would win.
    """
    return quantiles(samples, n=4, method="inclusive")[0] if len(samples) > 1 else samples[0]


def steady_score(samples: Sequence[float]) -> float:
    """Return the same on a GPU: the median, in seconds.

    There the clock follows power and temperature, and the least sample is one that was taken
    before the chip was at work in earnest.
    """
    return median(samples)


def score_on_cpu(clock: str, final: bool, flushed: bool) -> Statistic:
    """Return the statistic that ranks by a clock of the CPU, in the ``final`` comparison or before,
    where caches are flushed between calls (``flushed``) or are not."""
    return usual_score if flushed or (final and clock == "cpu") else score


def score_by_clock(clock: str, samples: Sequence[float]) -> float:
    """Return the latency that ranks, as the runners of this clock give it."""
    return statistics_by_clock(clock)[0](samples)


def statistics_by_clock(clock: str) -> Sequence[Statistic]:
    """List the statistics by which runners of this clock may give latencies, the usual one
    first.
    """
    return (steady_score,) if clock == "device" else (score, usual_score)


def call_limit(work: int, best: float | None) -> float:
    """Seconds a call may take before it counts as hung.

    Ten times the best there is, but half a second for a busy machine; without a best, the time
    of plain scalar code that does 10^9 operations or moves of the ``work`` a second.
    """
    if best is not None and math.isfinite(best):
        return max(0.5, 10 * best)
    return max(1.0, work / 1e9)
