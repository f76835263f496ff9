"""The space of schedules of a workload on a target, and populations of them."""

from tilewright.spaces.space.points import NO_PREFERENCE, Population
from tilewright.spaces.space.space import NEAR_ATTEMPTS, Space

__all__ = ["NEAR_ATTEMPTS", "NO_PREFERENCE", "Population", "Space"]
