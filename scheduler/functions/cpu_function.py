"""Call a CPU kernel as a Python function."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Self

import numpy as np

from tilewright.measure.cpu.binaries import is_built
from tilewright.scheduler.functions.arrays import ends_of
from tilewright.scheduler.functions.caller import CallParts
from tilewright.scheduler.functions.holding import HoldingFunction, check_held
from tilewright.scheduler.functions.kernel_call import KernelCall, loaded
from tilewright.scheduler.functions.kernel_function import Called, KernelFunction
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.errors import InputError
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target, detect_target
from tilewright.spaces.workloads.calling import Calling, calling_of
from tilewright.spaces.workloads.workload import Workload


class CpuFunction(KernelFunction):
    """A CPU kernel, built and loaded, that is called on NumPy arrays and CPU torch tensors.

    Example::

        c = function(a, b)  # by position: the workload's inputs, then the epilogue's
        function(a=a, b=b, out=c)  # by name, into an array of yours

    The result goes to ``out`` or to a new array of the first input's kind, and is returned. Several
    outputs are a tuple, and ``out`` is a sequence or a mapping by name. Raises :class:`InputError`
    for arrays that do not fit. Any number of threads may call at once: each call has a workspace of
    its own, kept for the next one.
    """

    __slots__ = ("__call__",)
    __call__: Callable[..., Any]
    checks = True

    def _make_ready(self) -> None:
        calling = calling_of(self.workload)
        ends = ends_of(self.workload) if self.check_indices else None
        self._call = KernelCall(self._kernel, *self._loaded(), calling, ends)
        self.__call__ = self._call.fastest

    def holding(self, **held: Any) -> HoldingFunction:
        """Return the function of the other arrays, which holds these, by their names.

        Their indices are checked once, here; calls then take no time for them. Raises
        :class:`InputError` for arrays that do not fit.
        """
        ends, calling = ends_of(self.workload), calling_of(self.workload)
        parts = (self._kernel, *self._loaded(), calling)
        check_held(KernelCall(*parts, ends).given, held)
        checked = ends if self.check_indices else None
        return HoldingFunction(self, KernelCall(*parts, checked, held=held), held)

    def _loaded(self) -> tuple[ctypes.CDLL, int]:
        """Return the library of the kernel, and the address of the threads that it runs on."""
        assert isinstance(self.target, CpuTarget)
        return loaded(self._kernel, self.target)

    @classmethod
    def opened(cls, space: Space, schedule: Schedule, kernel: Kernel) -> Called:
        """Return the calls of an open ``kernel``, which share workspaces, by extent and arrays."""
        assert isinstance(space.target, CpuTarget)
        library, runtime = loaded(kernel, space.target)
        idle: list[np.ndarray] = []

        def at(extent: int, calling: Calling) -> Callable[..., Any]:
            return KernelCall(kernel, library, runtime, calling, None, idle, extent).fastest

        return at

    @classmethod
    def is_built(cls, kernel: Kernel, target: Target) -> bool:
        """Tell whether the kernel's library is there."""
        assert isinstance(target, CpuTarget)
        return is_built(kernel.source, target)

    @classmethod
    def remade(cls, workload: Workload, target: Target, *parts: Any) -> Self:
        """Return a function like the one of these parts: :class:`InputError` on a machine that is
        not the ``target``, of which a process may be bound to fewer cores."""
        assert isinstance(target, CpuTarget)
        here = detect_target("cpu", threads=target.threads)
        if differing := _differing(here, target) - {"cores"}:
            raise InputError(
                f"this function is for {target.summary}, but here is {here.summary}, of another "
                f"{' and '.join(sorted(differing))}; best() makes one that fits"
            )
        return super().remade(workload, target, *parts)

    @property
    def parts(self) -> CallParts | None:
        """All that C code needs to call the kernel; None if it cannot check the arrays."""
        return self._call.parts


def _differing(one: Target, other: Target) -> set[str]:
    """Return the names of what two targets of a kind differ in."""
    names = [field.name for field in fields(one)]
    return {name for name in names if getattr(one, name) != getattr(other, name)}
