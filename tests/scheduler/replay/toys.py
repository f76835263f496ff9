"""Small recorded spaces. Both files hold eight schedules, of which one failed; the cache file lacks
its closing braces."""

from __future__ import annotations

from itertools import product
from pathlib import Path

from tilewright.scheduler.replay.formats.foreign import foreign_recording
from tilewright.scheduler.replay.recording import Outcome, Recording

CACHE = Path(__file__).with_name("toy_GPU.json")
T4 = Path(__file__).with_name("toy_T4.json")


def hilly() -> Recording:
    """440 schedules, of which some failed, with one valley."""
    points = [
        {"x": x, "y": y, "z": z}
        for x, y, z in product(range(16, 272, 16), range(10), range(4))
        if x * (y + 1) <= 1024
    ]
    return foreign_recording("hilly", "toy", "GPU", points, [_outcome(**p) for p in points])


def _outcome(x: int, y: int, z: int) -> Outcome:
    failed = z == 3 and y == 0
    seconds = 1e-3 * (1.0 + abs(x - 32) / 16 + (y - 3) ** 2 + 0.1 * z)
    return Outcome(None if failed else seconds, 0.5)
