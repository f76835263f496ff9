"""One operator to compare."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilewright.spaces.operators import workload
from tilewright.spaces.workloads.workload import Workload


@dataclass(frozen=True)
class Case:
    """One operator with its parameters, called ``title`` if that says more. On a GPU results may be
    wrong by ``slack`` of the outputs' mean: sums of a million terms are in float32. Of places a
    share may be ``elsewhere``, where two elements are nearly equal."""

    operator: str
    parameters: tuple[tuple[str, int | float | str], ...]
    title: str = ""
    slack: float = 1e-4
    elsewhere: float = 0.0

    @property
    def name(self) -> str:
        """A name such as ``softmax 8192x8192 bfloat16``."""
        if self.title:
            return self.title
        words = dict(self.parameters)
        kind = words.pop("dtype", "float32")
        return f"{self.operator} {'x'.join(map(str, words.values()))} {kind}"

    @cached_property
    def workload(self) -> Workload:
        """The workload."""
        return workload(self.operator, **dict(self.parameters))

    def inputs(self) -> dict[str, np.ndarray]:
        """Return the inputs that it is timed on, by the names of operands."""
        return self.workload.make_inputs(seed=1)
