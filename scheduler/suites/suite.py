"""Suites: workloads that are tuned together, such as the products of a model, with weights.

A suite is a TOML file::

    title = "what it is"

    [[workloads]]
    name = "how tables call it"
    operator = "matmul"
    parameters = { m = 128, n = 768, k = 768, epilogue = "x + bias[n]" }
    weight = 36

``operator`` is a name or a program's text, as in :func:`spaces.operators.workload`. ``title``,
``name`` and ``weight`` (1) may be left out. Weights by section, such as
``weight = { decode = 32, prefill = 64 }``, make a suite of several sections, each with an objective
of its own (:mod:`scheduler.suites.sections`). A workload with ``gradient = true``, or the names of
operands such as ``gradient = "A,bias"``, is followed by its gradient, of the same weight. Some
suites are shipped, by name.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.operators import workload
from tilewright.spaces.validation.checks import positive
from tilewright.spaces.validation.files import open_now
from tilewright.spaces.validation.nearest import suggestion
from tilewright.spaces.workloads.workload import Workload

SHIPPED = Path(__file__).parent
MOST_BYTES = 1 << 20
KEYS = ("title", "workloads")
MEMBER_KEYS = ("name", "operator", "parameters", "weight", "gradient")
SECTION = re.compile(r"[\w.-]{1,40}", re.ASCII)
"""The name of a section."""


@dataclass(frozen=True)
class Member:
    """A workload of a suite; ``weight`` says how much its latency counts, such as how often it
    occurs. In a suite of ``sections`` it is the sum of the weights in them."""

    workload: Workload
    weight: float = 1.0
    name: str = ""
    sections: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of_sections(cls, workload: Workload, sections: Mapping[str, float], name: str) -> Member:
        """Return a member with a weight in each of some sections."""
        return cls(workload, sum(sections.values()), name, dict(sections))

    @property
    def label(self) -> str:
        """The name that tables show."""
        return self.name or str(self.workload)


@dataclass(frozen=True)
class Suite:
    """Distinct workloads with weights above 0; at least one. Either all of them are in sections, or
    none is. :class:`InputError` otherwise."""

    title: str
    members: tuple[Member, ...]

    def __post_init__(self) -> None:
        if not self.members:
            raise InputError("it has no workloads; allowed: at least one [[workloads]]")
        seen: set[str] = set()
        for member in self.members:
            positive("weight", member.weight)
            if member.workload.key in seen:
                raise InputError(f"{member.workload} is in it twice; allowed: once, and a weight")
            seen.add(member.workload.key)
            if bool(member.sections) != bool(self.sections):
                named = ", ".join(self.sections)
                raise InputError(f"{member.workload} is in no section; allowed: {named}")

    @property
    def sections(self) -> tuple[str, ...]:
        """The names of the sections, in the order in which they are met; none of a plain suite."""
        return tuple(dict.fromkeys(name for member in self.members for name in member.sections))

    def section(self, name: str) -> Suite:
        """Return the workloads of one section as a suite; :class:`InputError` if there is no such
        one."""
        if name not in self.sections:
            allowed = ", ".join(self.sections) or "none, for the suite has no sections"
            raise InputError(f"the suite has no section {shown(name)}; allowed: {allowed}")
        members = (
            replace(member, weight=member.sections[name], sections={})
            for member in self.members
            if name in member.sections
        )
        return Suite(f"{self.title}, {name}", tuple(members))


def as_suite(given: Suite | str | Path) -> Suite:
    """Return ``given`` itself, or see :func:`read_suite`."""
    if isinstance(given, Suite):
        return given
    if not isinstance(given, str | Path):
        raise InputError(f"{shown(given)} is no suite; allowed: a Suite, a name or a path")
    return read_suite(given)


def shipped_suites() -> list[str]:
    """Return the names of the suites that come with the program."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def read_suite(name: str | Path) -> Suite:
    """Return the suite of a shipped name or in a file; :class:`InputError` if there is none, or it
    is malformed."""
    path = SHIPPED / f"{name}.toml" if str(name) in shipped_suites() else Path(name)
    try:
        return _suite(_table(path), path.stem)
    except InputError as error:
        raise InputError(f"suite {shown(str(name))}: {error}") from None


def _table(path: Path) -> Mapping[str, Any]:
    """Read a suite's TOML file."""
    try:
        with open_now(path) as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        names = ", ".join(shipped_suites())
        near = suggestion(path.name, shipped_suites())
        raise InputError(f"{reason}; {near}allowed: a TOML file, or one of {names}") from None
    if len(data) > MOST_BYTES:
        raise InputError(f"it is larger than the {MOST_BYTES} bytes that are allowed")
    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:  # among them: not UTF-8, not TOML
        raise InputError(f"it is no TOML: {shown(str(error))}") from None


def _suite(table: Mapping[str, Any], name: str) -> Suite:
    _check_keys(table, KEYS)
    entries = table.get("workloads", [])
    if not isinstance(entries, list):
        raise InputError("workloads are no list; allowed: [[workloads]], once for each")
    members = []
    for number, entry in enumerate(entries, 1):
        try:
            members += _members(entry)
        except InputError as error:
            raise InputError(f"workload {number}: {error}") from None
    return Suite(_text(table, "title", name), tuple(members))


def _members(entry: object) -> list[Member]:
    """Return a workload, and its gradient if that is asked for."""
    if not isinstance(entry, Mapping):
        raise InputError(f"{shown(entry)} is no table of {', '.join(MEMBER_KEYS)}")
    _check_keys(entry, MEMBER_KEYS)
    operator, parameters = entry.get("operator"), entry.get("parameters", {})
    if not isinstance(operator, str):
        raise InputError(f"operator={shown(operator)} is no text; allowed: a name or a program")
    if not isinstance(parameters, Mapping):
        raise InputError(f"parameters={shown(parameters)} are no table, such as {{ m = 512 }}")
    made, name = workload(operator, **parameters), _text(entry, "name", "")
    named = [(made, name)]
    if (asked := entry.get("gradient", False)) is not False:
        named.append((_gradient(made, asked), f"gradient of {name or made}"))
    return [_member(each, label, entry.get("weight", 1.0)) for each, label in named]


def _member(made: Workload, name: str, weight: object) -> Member:
    if isinstance(weight, Mapping):
        return Member.of_sections(made, section_weights(weight), name)
    return Member(made, positive("weight", weight), name)


def _gradient(made: Workload, asked: object) -> Workload:
    """Return the workload of a gradient, by the operands that are named, or by all that have
    one."""
    from tilewright.spaces.workloads.gradients import differentiable, gradient
    from tilewright.spaces.workloads.served import workload_of

    if asked is not True and not isinstance(asked, str):
        raise InputError(f"gradient={shown(asked)}; allowed: true, or operands such as 'x,w'")
    names = differentiable(made) if asked is True else asked
    return workload_of(gradient(made, names))


def section_weights(given: Mapping[str, Any]) -> dict[str, float]:
    """Return the weights by section; :class:`InputError` for a name or a weight that is not
    allowed."""
    if not given:
        raise InputError("weight={} is empty; allowed: a weight for each section")
    for name in given:
        if not SECTION.fullmatch(name):
            raise InputError(f"section {shown(name)}; allowed: letters, digits, dots and dashes")
    return {name: positive(f"weight of {name}", weight) for name, weight in given.items()}


def _check_keys(table: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
    for key in table:
        if key not in allowed:
            raise InputError(f"unknown key {shown(key)}; allowed: {', '.join(allowed)}")


def _text(table: Mapping[str, Any], key: str, default: str) -> str:
    value = table.get(key, default)
    if not isinstance(value, str) or not value.isprintable():
        raise InputError(f"{key}={shown(value)} is no text of one line that can be printed")
    return value
