"""The space of schedules of a workload on a target, and populations of them."""

from spaces.space.points import NO_PREFERENCE, Population
from spaces.space.space import NEAR_ATTEMPTS, Space

__all__ = ["NEAR_ATTEMPTS", "NO_PREFERENCE", "Population", "Space"]
