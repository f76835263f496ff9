"""The kinds of targets: one record each, which says where every part for that kind is found.

Parts are named as ``module:name`` and loaded when they are first used, so that nothing is imported
for a target that nobody has. A further kind is one more :class:`Backend`, registered before it is
used; nothing else asks which kind a target is.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tilewright.spaces.errors import InputError, shown


@dataclass(frozen=True)
class Backend:
    """The names of the parts for one kind of target; :meth:`part` loads one.

    ``target`` is the class of targets, ``detect`` a function ``(variant, threads)`` to a target,
    ``variants`` the names after the colon that ``detect`` takes, and ``templates`` a mapping from
    the names of templates to their classes. ``rates`` gives nominal peaks
    (:mod:`costmodel.roofs.peaks`), ``builder`` is called with a target and a number of jobs,
    ``runner`` with a target and a device's number, ``pacing`` is a
    :class:`scheduler.tuning.pace.Pacing`, and ``function`` makes a schedule callable.
    """

    kind: str
    target: str
    detect: str
    variants: str
    templates: str
    rates: str
    builder: str
    runner: str
    pacing: str
    function: str

    def part(self, name: str) -> Any:
        """Return the part called ``name``, loaded."""
        module, _, attribute = getattr(self, name).partition(":")
        return getattr(import_module(module), attribute)


_BACKENDS: dict[str, Backend] = {}


def register(backend: Backend) -> None:
    """Make a kind of target known, or replace one."""
    _BACKENDS[backend.kind] = backend


def backend(kind: object) -> Backend:
    """Return the record of a kind; :class:`InputError` if it is unknown."""
    if not isinstance(kind, str) or kind not in _BACKENDS:
        raise InputError(f"unknown kind of target {shown(kind)}; allowed: {', '.join(_BACKENDS)}")
    return _BACKENDS[kind]


def kinds() -> tuple[str, ...]:
    """List all kinds of targets."""
    return tuple(_BACKENDS)


register(
    Backend(
        kind="cpu",
        target="tilewright.spaces.cpu.target:CpuTarget",
        detect="tilewright.spaces.cpu.target:detect",
        variants="tilewright.spaces.cpu.target:VARIANTS",
        templates="tilewright.spaces.cpu.templates:TEMPLATES",
        rates="tilewright.costmodel.roofs.peaks:cpu_rates",
        builder="tilewright.measure.cpu.builder:CBuilder",
        runner="tilewright.measure.cpu.runner:runner",
        pacing="tilewright.scheduler.tuning.pace:CPU",
        function="tilewright.scheduler.functions.cpu_function:CpuFunction",
    )
)
register(
    Backend(
        kind="cuda",
        target="tilewright.spaces.cuda.target:CudaTarget",
        detect="tilewright.spaces.cuda.target:detect",
        variants="tilewright.spaces.cuda.target:ARCHITECTURES",
        templates="tilewright.spaces.cuda.templates:TEMPLATES",
        rates="tilewright.costmodel.roofs.peaks:gpu_rates",
        builder="tilewright.measure.cuda.nvrtc:NvrtcBuilder",
        runner="tilewright.measure.cuda.runner:runner",
        pacing="tilewright.scheduler.tuning.pace:CUDA",
        function="tilewright.scheduler.functions.cuda_function:CudaFunction",
    )
)
