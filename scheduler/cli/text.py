"""Text that is safe to print, whoever wrote it."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence

from tilewright.scheduler.cli.standard_streams import discard_output

LONGEST = 800  # characters of a remark
MOST_NAMES = 5  # names that a line lists
PASSWORDS = (
    re.compile(r"(://[^:@/\s]*:)[^@\s]*(@)"),
    re.compile(r"([?&](?:ssl)?password=)[^&\s']*()"),
)


def plain(text: str) -> str:
    """Return ``text`` in one line, with what would not print written as Python escapes it.

    Whatever a database, a log or a tool said passes through here on its way to a terminal, where
    a control character could change the window's title, its colours or what stands above.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def say(text: str) -> None:
    """Print one line of remarks on standard error, without the passwords of URLs, and without the
    middle of a very long one."""
    line = plain(without_passwords(" ".join(text.split())))
    if len(line) > LONGEST:
        line = f"{line[: LONGEST - 100]} ... {line[-95:]}"
    try:
        print(f"tilewright: {line}\n", end="", file=sys.stderr, flush=True)
    except OSError:
        discard_output(2)


def some(names: Sequence[str]) -> str:
    """Return the names, or the first few of many and how many others there are."""
    if len(names) <= MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[:MOST_NAMES])} and {len(names) - MOST_NAMES} others"


def counted(count: int, what: str) -> str:
    """Return a count of something, such as ``1 record`` or ``2 records``."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def _escape(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def without_passwords(text: str) -> str:
    """Return ``text`` with the passwords of URLs in it left out."""
    for password in PASSWORDS:
        text = password.sub(r"\1***\2", text)
    return text


def command_line() -> str:
    """Return the command line as the user typed it, with passwords removed from URLs."""
    return without_passwords(shlex.join(["tilewright", *sys.argv[1:]]))
