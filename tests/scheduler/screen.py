"""A terminal's screen, as far as displays of the command line use one."""

from __future__ import annotations

import re

_PIECE = re.compile(r"\x1b\[\??([\d;]*)([A-Za-z])|([\r\n])|([^\x1b\r\n]+)")


def left_on_screen(written: str) -> list[str]:
    """The lines that are left after ``written`` has moved up and erased lines as it wished."""
    lines, row, column = [""], 0, 0
    for number, command, control, text in _PIECE.findall(written):
        if command == "A":
            row = max(0, row - int(number or 1))
        elif command == "K":
            lines[row] = ""
        elif control == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif control == "\r":
            column = 0
        elif text:
            line = lines[row].ljust(column)
            lines[row] = line[:column] + text + line[column + len(text) :]
            column += len(text)
    return [line.rstrip() for line in lines]
