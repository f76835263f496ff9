"""Find the builder and the runner for a target."""

from __future__ import annotations

from tilewright.measure.interfaces import Builder, Runner
from tilewright.spaces.backends import backend
from tilewright.spaces.target import Target


def builder_for(target: Target, jobs: int) -> Builder:
    """Return a builder for the target that runs ``jobs`` compilations at a time."""
    return backend(target.kind).part("builder")(target, jobs)


def runner_for(target: Target, device: int = 0) -> Runner:
    """Return a runner for the target, which must be this machine: its device of this number."""
    return backend(target.kind).part("runner")(target, device)
