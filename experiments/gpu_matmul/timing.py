"""Interleaved device times with a cold L2."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from functools import cache

import torch

from tilewright.measure.cuda.session import COOLING_CALL

Call = Callable[[], object]

HEAT_SECONDS = 1.0
"""Seconds of work after which a GPU is as warm and as slow as it gets under its power limit."""

MOST_LEAD = 1024
LEAD = 4
"""Flushes before a round of short calls: a launch from Python takes longer on a slow host."""


class TooBusyError(Exception):
    """Nothing could be timed without the processor's time showing."""


def interleave(
    calls: Mapping[str, Call],
    rounds: int = 40,
    seconds: float = 2.0,
    lead: int = LEAD,
    heat: float = HEAT_SECONDS,
) -> dict[str, list[float]]:
    """Return the seconds of one call, a list a name, in shuffled rounds after two that do not
    count.

    All are first called in turn for ``heat`` seconds. Before each call that is timed other
    data is read until it fills L2 (written data would have to leave L2 while a call runs, and be
    paid for by that), and before that comes, where calls are long, another call of its kind.
    Calls and events are queued well ahead, by ``lead`` flushes where calls are short, so that the
    processor's time does not show: a round in which the device began a call before all of it was
    queued does not count, and the next one has twice the lead. Stops when ``seconds`` of device
    time are spent.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    names, spent = list(calls), 0.0
    is_long = _heat(calls, heat) > COOLING_CALL
    lead = 0 if is_long else lead
    counted, left = -2, 4 * (rounds + 2)
    while counted < rounds and left:
        left -= 1
        random.shuffle(names)
        found = _round({name: calls[name] for name in names}, lead, is_long)
        if found is None:
            lead = min(max(2 * lead, LEAD), MOST_LEAD)
            continue
        spent += sum(found.values())
        if counted >= 0:
            for name, elapsed in found.items():
                times[name].append(elapsed)
        counted += 1
        if spent > seconds and counted > 4:
            break
    if counted <= 0:
        raise TooBusyError("the processor queues calls more slowly than the device makes them")
    return times


def _round(calls: Mapping[str, Call], lead: int, is_long: bool) -> dict[str, float] | None:
    """Return the seconds of each call, or nothing if the device began one before all of it was
    queued."""
    events, late = {}, False
    for _ in range(lead):
        flush()
    for name, call in calls.items():
        start, end = events[name] = event(), event()
        if is_long:
            call()
        flush()
        start.record()
        call()
        end.record()
        late |= start.query()
    torch.cuda.synchronize()
    if late:
        return None
    return {name: start.elapsed_time(end) * 1e-3 for name, (start, end) in events.items()}


def event() -> torch.cuda.Event:
    """Return one that knows when it happened."""
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def flush() -> None:
    """Queue that other data are read until they fill L2."""
    others, total = _others()
    torch.sum(others, dim=0, out=total)


@cache
def _others() -> tuple[torch.Tensor, torch.Tensor]:
    """Data that fill L2, and room for their sum."""
    size = torch.cuda.get_device_properties(0).L2_cache_size
    return torch.ones(size, device="cuda"), torch.empty((), device="cuda")


def _heat(calls: Mapping[str, Call], seconds: float) -> float:
    """Keep the device at work; seconds of a call on average."""
    start, made = time.monotonic(), 0
    while time.monotonic() < start + seconds:
        for call in calls.values():
            call()
        torch.cuda.synchronize()
        made += len(calls)
    return (time.monotonic() - start) / made
