"""Text that came from outside: what may be kept as a name, and how the rest is spelled out."""

from __future__ import annotations

MOST_CHARACTERS = 1000
"""The longest name, description or expression that is taken from outside."""


def is_plain(text: object, most: int = MOST_CHARACTERS) -> bool:
    """Tell whether ``text`` is a string of at most ``most`` characters, all of them printable.

    Control characters, which would command a terminal, and lone surrogates, which no file can hold
    as UTF-8, are not.
    """
    return isinstance(text, str) and len(text) <= most and text.isprintable()


def brief(text: str, lines: int = 5, width: int = 200) -> str:
    """Return the first lines of ``text``, each cut to ``width`` characters."""
    found = text.splitlines()
    cut = [line if len(line) <= width else f"{line[: width - 4]} ..." for line in found]
    return "\n".join(cut if len(cut) <= lines else [*cut[: lines - 1], "..."])


def spelled_out(text: str) -> str:
    """Return ``text`` with what cannot be printed written as in Python (``\\x1b``, ``\\udcff``).

    Line breaks and tabs stay.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
