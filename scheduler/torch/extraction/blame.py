"""The line of a user's code that an error comes from."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import Path

import torch

from tilewright.spaces.errors import InputError

OURS = (Path(torch.__file__).parent, Path(__file__).parents[3])
"""The folders that hold the frames of torch and of this program."""
LONGEST = 120
"""Characters of a cause that a message repeats."""


def failed(error: BaseException) -> InputError:
    """Return the error of code of the user's as one line, with the cause, and the line of the
    code."""
    cause = error
    while type(cause).__module__.startswith("torch._dynamo"):  # it wraps what was raised
        inner = cause.__cause__ or cause.__context__
        if inner is None:
            break
        cause = inner
    said = (str(cause).strip() or "no reason").splitlines()[0]
    return InputError(f"{type(cause).__name__} at {user_line(error)}: {shortened(said)}")


def user_line(error: BaseException) -> str:
    """Return ``file.py:12`` of the innermost frame that is neither torch's nor ours."""
    frames = traceback.extract_tb(error.__traceback__)
    traced: Sequence[traceback.FrameSummary] = getattr(error, "real_stack", None) or []
    for frame in reversed([*frames, *traced]):
        path = Path(frame.filename)
        if not frame.filename.startswith("<") and not any(map(path.is_relative_to, OURS)):
            return f"{path.name}:{frame.lineno}"
    return "no line of your code"


def shortened(text: str) -> str:
    """Return the first words of a cause."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
