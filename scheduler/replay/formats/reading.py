"""Files that hold recorded spaces, whoever wrote them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tilewright.measure.records.decompressing import decompressed
from tilewright.measure.records.jsonl import FORMAT
from tilewright.scheduler.replay.formats.exports import export_recordings
from tilewright.scheduler.replay.formats.kernel_tuner import cache_recording
from tilewright.scheduler.replay.formats.t4 import t4_recording
from tilewright.scheduler.replay.recording import Recording
from tilewright.spaces.errors import InputError

ALLOWED = "a cache file of Kernel Tuner, a T4 results file, or an export of tilewright"
MOST_BRACES = 4  # closing braces that a stopped writer may have left out, at most
MOST_BYTES = 512 << 20  # of a JSON text, which is read as a whole


def read_recordings(path: Path, report: Callable[[str], None]) -> list[Recording]:
    """Return the recordings in a file, of an export one for each workload and target.

    ``report`` is told in words of what was left out. Raises :class:`InputError` for a file that
    cannot be read, that is none of those, or in which nothing ran.
    """
    text = _text(path)
    if text is None:
        return export_recordings(path, report)
    content = _parsed(path, text)
    name = path.name.removesuffix(".gz").removesuffix(".json")
    try:
        if "cache" in content and "tune_params_keys" in content:
            return [cache_recording(name, content)]
        if "results" in content:
            return [t4_recording(name, content)]
    except InputError as error:
        raise InputError(f"{path} cannot be replayed: {error}") from None
    except KeyError as error:
        raise InputError(f"{path} is no recorded space: an entry lacks {error}") from None
    except (TypeError, AttributeError, IndexError) as error:
        raise InputError(
            f"{path} is no recorded space: a value has a wrong type ({error}); allowed: {ALLOWED}"
        ) from None
    raise InputError(f"{path} is no recorded space; allowed: {ALLOWED}")


def _text(path: Path) -> str | None:
    """Return the text of a file; None if it is an export."""
    if path.exists() and not path.is_file():  # a pipe that nobody writes to would keep it waiting
        raise InputError(f"cannot read {path}: it is no regular file; allowed: {ALLOWED}")
    with decompressed(path) as file:
        first = file.readline(1 << 12)
        if FORMAT.encode() in first:
            return None
        data = first + file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise InputError(f"{path} holds more than the {MOST_BYTES} bytes that are allowed")
    try:
        return data.decode()
    except UnicodeError:
        raise InputError(
            f"{path} is no recorded space: its bytes are no text; allowed: {ALLOWED}"
        ) from None


def _parsed(path: Path, text: str) -> Any:
    """Return the JSON value in a text whose last closing braces may be missing."""
    text = text.rstrip().rstrip(",")
    problem: Exception | None = None
    for missing in range(MOST_BRACES + 1):
        try:
            content = json.loads(text + "}" * missing)
            if isinstance(content, dict):
                return content
            break
        except (ValueError, RecursionError) as error:
            problem = problem or error
    raise InputError(
        f"{path} is no recorded space: {problem or 'no JSON object'}; allowed: {ALLOWED}"
    )
