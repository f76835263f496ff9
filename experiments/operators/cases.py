"""The operators and shapes that are compared, by family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from spaces.operators import workload
from spaces.workload import Workload


@dataclass(frozen=True)
class Case:
    """One operator with its parameters."""

    operator: str
    parameters: tuple[tuple[str, int | str], ...]

    @property
    def name(self) -> str:
        """Such as ``softmax 8192x8192 bfloat16``."""
        words = dict(self.parameters)
        kind = words.pop("dtype", "float32")
        return f"{self.operator} {'x'.join(map(str, words.values()))} {kind}"

    @cached_property
    def workload(self) -> Workload:
        """What is computed."""
        return workload(self.operator, **dict(self.parameters))


def case(operator: str, dtype: str, **parameters: int | str) -> Case:
    """A case of some parameters."""
    return Case(operator, (*parameters.items(), ("dtype", dtype)))


LARGE = ((8192, 8192), (32768, 1024), (512, 131072))
SMALL = ((16384, 256), (4096, 1024), (64, 32768))
NORMS = ("softmax", "layernorm", "rmsnorm")

FAMILIES: Mapping[str, tuple[Case, ...]] = {
    "rows": (
        *(case(name, "bfloat16", r=r, c=c) for r, c in LARGE for name in NORMS),
        case("cross_entropy", "bfloat16", r=4096, c=32000),
        *(case(name, "float32", r=r, c=c) for r, c in LARGE for name in NORMS),
        *(case(name, "bfloat16", r=r, c=c) for r, c in SMALL for name in NORMS),
        case("logsumexp", "bfloat16", r=8192, c=8192),
        case("softmax", "bfloat16", r=64, c=262144),
    ),
    "maps": (
        case("swiglu", "bfloat16", r=4096, c=11008),
        case("swiglu", "float32", r=4096, c=4096),
    ),
}
"""In the order in which they are measured, the most telling first."""
