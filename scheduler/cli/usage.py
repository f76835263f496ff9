"""Turn Typer's complaints into sentences with the wrong value and what is allowed.

Typer's sentences depend on its version. Newer versions leave out the value, which the error's cause
still has, and raise a group's whole help as an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import typer

from tilewright.spaces.errors import shown

# Its module depends on the version of Typer.
UsageError = cast(type[typer.BadParameter], typer.BadParameter.__mro__[1])
HELP = "NoArgsIsHelpError"  # the class that newer versions raise for a group without a command


def is_help(error: typer.BadParameter) -> bool:
    """Return True if this is not a complaint, but the help of a group that was called alone."""
    return type(error).__name__ == HELP or not error.format_message()


def complaint(error: typer.BadParameter) -> str:
    """Return a sentence: what is wrong, with which value, and what is allowed or where to read
    it."""
    words = error.format_message().removesuffix(".").replace("Value error, ", "")
    given = _value(error)
    if given is not None and given not in words:
        words = words.replace("Invalid value for", f"Invalid value {shown(given)} for", 1)
    if error.ctx is None or (isinstance(error, typer.BadParameter) and error.message):
        return words
    if words.startswith("No such command"):
        commands = getattr(error.ctx.command, "commands", {})
        return f"{words.partition('. ')[0]}; allowed: {', '.join(commands)}"
    return f"{words}; see {error.ctx.command_path} --help"


def summary(command: Callable) -> str:
    """The first paragraph of a command's help, whole: lists of commands would end it in dots."""
    return " ".join((command.__doc__ or "").partition("\n\n")[0].split())


def _value(error: typer.BadParameter) -> str | None:
    """Return the text that could not be read, as far as the cause of the error knows it."""
    faults: Callable[[], list[dict[str, object]]] = getattr(error.__cause__, "errors", list)
    given = (fault.get("input") for fault in faults())
    return next((value for value in given if isinstance(value, str)), None)
