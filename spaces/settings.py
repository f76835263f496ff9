"""Settings: the database, the target and the threads that are used where nobody names them.

The environment comes first (``TILEWRIGHT_DB``, ``TILEWRIGHT_TARGET``), then the nearest
``pyproject.toml`` of the current folder and those above that has a table ``[tool.tilewright]``::

    [tool.tilewright]
    db = "kernels.db"         # a path from the file's folder, or a URL
    target = "cpu:threads=2"
    threads = 2               # of CPU kernels, where the target does not say
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.validation.nearest import suggestion

FILE = "pyproject.toml"
TABLE = "[tool.tilewright]"
VARIABLES = {"db": "TILEWRIGHT_DB", "target": "TILEWRIGHT_TARGET"}
BUILT_IN: Mapping[str, str | int] = {"db": "tuning.db", "target": "cpu", "threads": 1}
MOST_BYTES = 1 << 20
MOST_THREADS = 1 << 16


class Default(StrEnum):
    """Defaults of parameters in Python: the setting is read when the function is called."""

    DATABASE = "tuning.db"
    TARGET = "cpu"


@dataclass(frozen=True)
class Setting:
    """A value and where it is from, in words."""

    value: str | int
    origin: str


def setting(name: str) -> Setting:
    """Return the setting called ``db``, ``target`` or ``threads``; :class:`InputError` for a bad
    value."""
    variable = VARIABLES.get(name, "")
    if given := os.environ.get(variable, ""):
        return Setting(_checked(name, given, variable), variable)
    found = _nearest_table(Path.cwd())
    if found is not None and name in found[1]:
        file, table = found
        value = _checked(name, table[name], f"{name} in {TABLE} of {file}")
        if name == "db" and "://" not in str(value):
            value = str(file.parent / Path(str(value)).expanduser())
        return Setting(value, str(file))
    return Setting(BUILT_IN[name], "the default")


def default_database() -> str:
    """Return the database that is used where nobody names one."""
    return str(setting("db").value)


def default_target() -> str:
    """Return the name of the target that is used where nobody names one."""
    return str(setting("target").value)


def default_threads() -> int:
    """Return the threads of CPU kernels where nobody gives a number."""
    return int(setting("threads").value)


def _nearest_table(folder: Path) -> tuple[Path, Mapping[str, object]] | None:
    """Return the nearest file with a table for us, and the table."""
    for place in (folder, *folder.parents):
        table = _table(place / FILE)
        if table is not None:
            return place / FILE, table
    return None


def _table(file: Path) -> Mapping[str, object] | None:
    """Return our table of a file; None where there is none, or no file."""
    try:
        with file.open("rb") as stream:
            data = stream.read(MOST_BYTES)
    except OSError:
        return None
    return _read(file, data) if b"tilewright" in data else None


@lru_cache(maxsize=8)  # a service asks for the same file at every call
def _read(file: Path, data: bytes) -> Mapping[str, object] | None:
    """Return our table in the bytes of a file; None where there is none."""
    import tomllib  # takes a while

    try:
        tools = tomllib.loads(data.decode()).get("tool", {})
    except ValueError as error:
        raise InputError(f"{file} is no TOML: {error}") from None
    table = tools.get("tilewright") if isinstance(tools, dict) else None
    if table is None:
        return None
    if not isinstance(table, dict):
        raise InputError(f"tool.tilewright in {file} is {shown(table)}; allowed: a table")
    for key in table:
        if key not in BUILT_IN:
            allowed = ", ".join(BUILT_IN)
            words = f"{suggestion(key, BUILT_IN)}allowed: {allowed}"
            raise InputError(f"unknown key {shown(key)} in {TABLE} of {file}; {words}")
    return table


def _checked(name: str, value: object, where: str) -> str | int:
    """Return ``value`` as it may be; ``where`` says where it stands."""
    if name == "threads":
        if type(value) is int and 1 <= value <= MOST_THREADS:
            return value
        raise InputError(f"{where} is {shown(value)}; allowed: a whole number from 1")
    if not isinstance(value, str) or not value or not value.isprintable():
        raise InputError(f"{where} is {shown(value)}; allowed: text")
    if name == "target":
        _check_target(value, where)
    return value


def _check_target(value: str, where: str) -> None:
    from tilewright.spaces.backends import kinds

    if value.partition(":")[0] not in kinds():
        raise InputError(f"{where} is {shown(value)}; allowed: {', '.join(kinds())}, or a variant")
