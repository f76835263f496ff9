"""The hardware as data. One subclass per kind of target; see ``spaces.cpu`` and ``spaces.cuda``."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self, get_type_hints

from spaces.canonical import canonical_json
from spaces.errors import InputError


@dataclass(frozen=True)
class Target:
    """A machine to make kernels for. All fields are JSON values: the target is its description."""

    kind: ClassVar[str] = ""

    def to_json(self) -> dict[str, Any]:
        """The description as a JSON object; :func:`target_from_json` reads it back."""
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Self:
        """The target with these fields, as read from JSON; TypeError if one is not as declared."""
        types = get_type_hints(cls)
        values = dict(fields)
        for name, value in values.items():
            wanted = types.get(name)
            if wanted == tuple[str, ...] and isinstance(value, list | tuple):
                values[name] = tuple(value)
                fits = all(isinstance(word, str) for word in value)
            elif wanted is float:
                fits = type(value) in (int, float)
            else:
                fits = type(value) is wanted
            if not fits:
                raise TypeError(f"{name}={value!r}")
        return cls(**values)

    @property
    def fingerprint(self) -> str:
        """Hexadecimal digest of the whole description: equal means results are comparable."""
        text = canonical_json(self.to_json())
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def summary(self) -> str:
        """One line for people."""
        raise NotImplementedError


def detect_target(name: str, **options: Any) -> Target:
    """The target called ``name``: ``cpu``, ``cuda`` (the first GPU here) or ``cuda:sm_90a``.

    ``options`` are the kind's own, such as ``threads`` of the CPU. Raises :class:`InputError`
    for an unknown name, or where the machine has no such device.
    """
    kind, _, variant = name.partition(":")
    if kind == "cpu" and not variant:
        from spaces.cpu.target import detect_cpu

        return detect_cpu(**options)
    if kind == "cuda":
        from spaces.cuda.target import cuda_target

        return cuda_target(variant or None)
    raise InputError(f"unknown target {name!r}; allowed: cpu, cuda, cuda:sm_80 ... cuda:sm_90a")


def target_from_json(data: Mapping[str, Any]) -> Target:
    """The target that :meth:`Target.to_json` described; :class:`InputError` if it is not one."""
    fields = dict(data)
    kind = fields.pop("kind", None)
    try:
        if kind == "cpu":
            from spaces.cpu.target import CpuTarget

            return CpuTarget.from_fields(fields)
        if kind == "cuda":
            from spaces.cuda.target import CudaTarget

            return CudaTarget.from_fields(fields)
    except TypeError as error:
        raise InputError(f"malformed description of a {kind} target: {error}") from None
    raise InputError(f"unknown kind of target {kind!r}; allowed: cpu, cuda")
