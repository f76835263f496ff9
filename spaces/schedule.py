"""A schedule: one point of a space, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.errors import InputError
from tilewright.spaces.validation.canonical import canonical_json
from tilewright.spaces.validation.text import brief, is_plain

Value = int | str | bool

MOST_DECISIONS = 256
LARGEST = 2**63 - 1


@dataclass(frozen=True, eq=False)
class Schedule:
    """A template's name and the value of each of its decisions. Frozen, hashable, JSON-able.

    Two schedules are equal when they say the same, in whatever order the decisions stand.
    """

    template: str
    decisions: tuple[tuple[str, Value], ...]

    @cached_property
    def values(self) -> dict[str, Value]:
        """Decision name to value."""
        return dict(self.decisions)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schedule) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __getitem__(self, name: str) -> Value:
        return self.values[name]

    def to_json(self) -> dict[str, object]:
        """Return ``{"template": ..., "decisions": {...}}``."""
        return {"template": self.template, "decisions": self.values}

    @cached_property
    def key(self) -> str:
        """Canonical text: equal schedules have equal keys, in every process."""
        return canonical_json(self.to_json())

    @staticmethod
    def from_text(text: str) -> Schedule:
        """Return the schedule that ``str`` writes like this: ``low_bit: tile_rows=8 splits=2``."""
        template, colon, words = text.partition(":")
        decisions: dict[str, object] = {}
        for word in words.split():
            name, equals, value = word.partition("=")
            if not equals:
                raise InputError(f"{word!r:.80} is no decision; needs name=value")
            known = {"True": True, "False": False}
            whole = value.removeprefix("-").isdecimal() and len(value) < len(str(LARGEST))
            decisions[name] = int(value) if whole else known.get(value, value)
        if not colon:
            raise InputError(f"{text!r:.80} is no schedule; needs 'template: name=value ...'")
        return Schedule.from_json({"template": template.strip(), "decisions": decisions})

    @staticmethod
    def from_json(data: Mapping[str, object]) -> Schedule:
        """Return the schedule in ``data``. Only its form is checked: a space validates its
        values."""
        template, decisions = data.get("template"), data.get("decisions")
        if not is_plain(template) or not isinstance(decisions, Mapping):
            raise InputError(
                f"not a schedule: {dict(data)!r:.80}; needs 'template' and 'decisions'"
            )
        if len(decisions) > MOST_DECISIONS:
            raise InputError(f"{len(decisions)} decisions; allowed: up to {MOST_DECISIONS}")
        for name, value in decisions.items():
            if not (is_plain(name) and _is_value(value)):
                raise InputError(
                    f"decision {name!r:.80} has value {value!r:.80}; allowed: int of 64 bits, "
                    "printable str, bool"
                )
        return Schedule(str(template), tuple(decisions.items()))

    def __repr__(self) -> str:
        return brief(f"<Schedule {self}>", width=1000)

    def __str__(self) -> str:
        inner = " ".join(f"{name}={value}" for name, value in self.decisions)
        return f"{self.template}: {inner}"


def _is_value(value: object) -> bool:
    if isinstance(value, int):
        return -LARGEST <= value <= LARGEST
    return is_plain(value)
