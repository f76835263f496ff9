"""The facts that a host of a cluster reports before it gets any work."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.measure.cluster.host_services import fits, load_host_services
from tilewright.measure.cluster.topology import Domain
from tilewright.measure.records.fields import Fields
from tilewright.measure.records.jsonl import parse_json
from tilewright.spaces.errors import InputError
from tilewright.spaces.target import Target, target_from_json
from tilewright.spaces.validation.canonical import canonical_json
from tilewright.spaces.version import VERSION


@dataclass(frozen=True)
class Facts:
    """One host: name, versions, cores, and what it can build for.

    ``cpu`` is its CPU as a target of one thread; where that is none, ``lacking`` says why.
    """

    host: str
    versions: Mapping[str, str]
    domains: tuple[Domain, ...]
    cpu: Target | None
    lacking: str
    nvrtc: str

    def builds(self, target: Target) -> bool:
        """Tell whether this host can make binaries for ``target``. C is compiled only for the CPU
        of the compiling host; CUDA for any GPU, by the compiler that the target names.
        """
        if target.kind == "cpu":
            return self.cpu is not None and fits(self.cpu, target)
        return bool(self.nvrtc) and self.nvrtc == getattr(target, "compiler_version", "")


def versions() -> dict[str, str]:
    """Return the versions that have to be the same in a driver and its workers."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"tilewright": VERSION, "python": python}


def facts_text(name: str) -> str:
    """Write this host's facts as JSON, with the builders and runners of the services called
    ``name``.
    """
    here = load_host_services(name)
    cpu, lacking = None, ""
    try:
        cpu = here.device("cpu").to_json()
    except InputError as error:
        lacking = str(error)
    return canonical_json(
        {
            "host": platform.node(),
            "versions": versions(),
            "domains": here.domains(),
            "cpu": cpu,
            "lacking": lacking,
            "nvrtc": here.nvrtc(),
        }
    )


def read_facts(text: str) -> Facts:
    """Return the facts of a :func:`facts_text`; :class:`InputError` if malformed, or if the host
    has other versions than the driver."""
    fields = Fields(parse_json(text))
    host = fields.prose("host")
    found = fields.description("versions")
    for name, version in versions().items():
        if found.get(name) != version:
            raise InputError(
                f"{host} has {name} {found.get(name)}, but this driver has {name} {version}; "
                "they must be the same"
            )
    cpu = fields.take("cpu")
    facts = Facts(
        host=host,
        versions=found,
        domains=_domains(fields.take("domains")),
        cpu=None if cpu is None else target_from_json(Fields({"cpu": cpu}).description("cpu")),
        lacking=fields.prose("lacking"),
        nvrtc=fields.prose("nvrtc"),
    )
    fields.finish()
    return facts


def _domains(data: Any) -> tuple[Domain, ...]:
    try:
        return tuple(tuple(tuple(int(cpu) for cpu in core) for core in domain) for domain in data)
    except (TypeError, ValueError):
        raise InputError(f"domains={data!r:.80} are no groups of cores") from None
