"""Which attempts may win, and in which order: one rule, for the database and for a run.

Latencies of a search and of a final comparison do not compare. The best of a search won partly by
luck, by 1-2 % on average and 10 % at worst; and a GPU that is at work all the time, as in a
comparison, is slower than one that waits for compilers. So:

- Of a schedule only the last attempt counts, and besides its last comparison, if only a search
  measured it since. An attempt that the machine lost, or that a run found false, changes nothing.
- A comparison's latency ranks as it is.
- A search's latency ranks as if it were ``HANDICAP`` times as long: far enough that luck does not
  beat who was compared, near enough that a run which was killed before its comparison counts.
- What a search measured before the last comparison, and that comparison passed over, ranks as if
  it were ``PASSED_OVER`` times as long: it had its chance. It wins only far ahead, as where
  the two were made on different machines and met in one database later.

What is earlier and later is the order in which attempts became known here.
"""

from __future__ import annotations

from collections.abc import Sequence

from measure.measurement import Measurement
from spaces.schedule import Schedule

HANDICAP = 1.1
PASSED_OVER = 2.0
FINAL = "final"


def rank(measurement: Measurement, passed_over: bool = False) -> float:
    """What a right attempt ranks by, in seconds; the least is the best."""
    assert measurement.score is not None
    if measurement.round == FINAL:
        return measurement.score
    return measurement.score * (PASSED_OVER if passed_over else HANDICAP)


def standing(attempts: Sequence[Measurement]) -> list[tuple[float, Measurement]]:
    """Those of ``attempts`` that may win, each after its :func:`rank`, in the given order, which
    is that in which they became known. What was found false is not among them."""
    last: dict[tuple[Schedule, str], int] = {}
    comparison = -1
    for place, attempt in enumerate(attempts):
        if not attempt.lost:
            last[attempt.schedule, attempt.round] = place
            if attempt.ok and attempt.round == FINAL:
                comparison = place
    return [
        (rank(attempt, passed_over=place < comparison), attempt)
        for place, attempt in enumerate(attempts)
        if attempt.ok
        and place == last[attempt.schedule, attempt.round]
        and place >= last.get((attempt.schedule, FINAL), place)
    ]
