"""A cache of a test's own that has what every run builds once."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import platformdirs

from tilewright.measure.cpu.peak import measure_peaks
from tilewright.spaces.target import detect_target

KINDS = ("binaries", "peaks", "emulator")


def warm_cache(folder: Path, kinds: Sequence[str] = KINDS) -> Path:
    """``folder``, which may be a cache now. What is in it is checked by its digests; no run's own
    files are, and nothing that was tuned."""
    measure_peaks(detect_target("cpu"))
    for kind in kinds:
        made = platformdirs.user_cache_path("tilewright") / kind
        if made.exists():
            shutil.copytree(made, folder / "tilewright" / kind)
    return folder
