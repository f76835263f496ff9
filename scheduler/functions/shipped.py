"""Call CPU kernels whose binaries came from elsewhere: no compiler is needed."""

from __future__ import annotations

import ctypes
from typing import Any

from tilewright.measure.cpu.pool import pool_of
from tilewright.scheduler.functions.cpu_function import CpuFunction
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space


class ShippedFunction(CpuFunction):
    """A CPU kernel of a library that is loaded already, over threads of a library of thread
    pools."""

    def __init__(
        self,
        space: Space,
        schedule: Schedule,
        provenance: str,
        library: ctypes.CDLL,
        pool: ctypes.CDLL,
    ) -> None:
        self._given_library, self._given_pool = library, pool
        super().__init__(space, schedule, provenance)

    def _loaded(self) -> tuple[ctypes.CDLL, int]:
        assert isinstance(self.target, CpuTarget)
        return self._given_library, pool_of(self._given_pool, self.target.threads)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it as any kernel's function: who unpickles it builds it anew."""
        parts = (self.workload, self.target, self.schedule, self.provenance, self.check_indices)
        return CpuFunction.remade, parts
