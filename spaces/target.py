"""The hardware as data. One subclass per kind of target; see ``spaces.cpu`` and ``spaces.cuda``."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Mapping
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Self,
    get_args,
    get_origin,
    get_type_hints,
)

from tilewright.spaces.backends import backend, kinds
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.settings import Default, default_target
from tilewright.spaces.validation.canonical import canonical_json
from tilewright.spaces.validation.limits import check

if TYPE_CHECKING:
    from tilewright.spaces.workloads.workload import Workload

NAMES = "cpu, cuda, cuda:sm_80 ... cuda:sm_90a, cpu:threads=2"


@dataclass(frozen=True)
class Target:
    """A machine to make kernels for. All fields are JSON values: the target is its description.

    Each field declares what it may hold (``spaces.validation.limits``), so that a description from
    anywhere is one that spaces can be made of; any other raises :class:`InputError` where it is
    made.
    """

    kind: ClassVar[str] = ""
    built_alike: ClassVar[tuple[str, ...]] = ()
    """Fields that siblings have in common: what kernels are made of, beside sizes and speeds."""

    def __post_init__(self) -> None:
        for name, limit in _limits(type(self)).items():  # type: ignore[arg-type]
            check(name, getattr(self, name), limit)

    def to_json(self) -> dict[str, Any]:
        """Return the description as a JSON object; :func:`target_from_json` reads it back."""
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Self:
        """Return the target with these fields, as read from JSON.

        TypeError if one is missing or unknown, :class:`InputError` if it holds what it may not.
        """
        return cls(**{n: tuple(v) if isinstance(v, list) else v for n, v in fields.items()})

    @cached_property
    def fingerprint(self) -> str:
        """Hexadecimal digest of the whole description: equal means results are comparable."""
        text = canonical_json(self.to_json())
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def text(self) -> str:
        """The target's name on its own machine, see :func:`detect_target`."""
        return self.kind

    @property
    def summary(self) -> str:
        """One line for people."""
        raise NotImplementedError

    def differs_in_threads(self, other: Target) -> bool:
        """Tell whether ``other`` is this machine for kernels of another number of threads."""
        return False

    def is_sibling(self, other: Target) -> bool:
        """Tell whether schedules that are fast on ``other`` are likely to be fast here. It is a
        machine of the same build; sizes, speeds, available cores and the compiler may differ.
        """
        same = self.kind == other.kind and self != other
        return same and all(getattr(self, n) == getattr(other, n) for n in self.built_alike)

    def least_seconds(self, workload: Workload) -> float:
        """Bound the seconds of every kernel of this workload from below.

        The bound is a generous roofline, several times beyond any real device: a measurement below
        it is a mistake or a lie.
        """
        raise NotImplementedError


@cache
def _limits(kind: type[Target]) -> dict[str, Container[object]]:
    """Map each field's name to its limits."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: get_args(h)[1] for name, h in hints.items() if get_origin(h) is Annotated}


def detect_target(name: str, threads: int | None = None) -> Target:
    """Return the target called ``name``: ``cpu``, ``cpu:threads=2``, ``cuda`` (the first GPU here)
    or ``cuda:sm_90a``.

    ``threads`` is how many threads a kernel of the CPU may use, 1 if neither it nor the name says.
    Raises :class:`InputError` for an unknown name, or where the machine has no such device.
    """
    kind, _, variant = name.partition(":") if isinstance(name, str) else ("", "", "")
    if kind not in kinds():
        raise InputError(f"unknown target {shown(name)}; allowed: {NAMES}")
    return backend(kind).part("detect")(variant, threads)


def target_names() -> tuple[str, ...]:
    """Return all names that :func:`detect_target` takes; ``cuda`` needs a GPU."""
    return tuple(
        name
        for kind in kinds()
        for name in (kind, *(f"{kind}:{variant}" for variant in backend(kind).part("variants")))
    )


def as_target(given: Target | str) -> Target:
    """Return ``given`` itself, or the target of that name, see :func:`detect_target`."""
    if given is Default.TARGET:
        given = default_target()
    return given if isinstance(given, Target) else detect_target(given)


def target_from_json(data: Mapping[str, Any]) -> Target:
    """Return the target that :meth:`Target.to_json` described; :class:`InputError` if it is not
    one."""
    fields = dict(data)
    kind = fields.pop("kind", None)
    target: type[Target] = backend(kind).part("target")
    try:
        return target.from_fields(fields)
    except (TypeError, InputError) as error:
        raise InputError(f"malformed description of a {kind} target: {error}") from None
