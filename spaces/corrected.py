"""Templates whose kernels compute chains of reductions by corrections, and what these promise."""

from __future__ import annotations

from tilewright.spaces.derivation.chains.chain import is_weak
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.template import Template
from tilewright.spaces.workloads.workload import Workload


class CorrectedTemplate(Template):
    """A template of chains; abstract."""

    @classmethod
    def numerics_of(cls, workload: Workload) -> Numerics:
        """Return ``FAST`` if the chain has a correction that a strict one has not."""
        return Numerics.FAST if is_weak(workload.program) else Numerics.STRICT
