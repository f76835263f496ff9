"""The two kinds of actors: one builds, one measures on a device that is its own.

Both are asked by text and answer by text, see :mod:`measure.cluster.wire`. Candidates never run in
an actor: a runner supervises a measuring child, as it does on a machine by itself.
"""

from __future__ import annotations

import fcntl
import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tilewright.measure import retrying
from tilewright.measure.cluster.host_services import load_host_services
from tilewright.measure.cluster.wire import (
    build_answer,
    read_build_request,
    read_run_request,
    run_answer,
)
from tilewright.measure.host.directories import cache_directory
from tilewright.measure.interfaces import Builder, Runner
from tilewright.measure.records.measurement import Measurement
from tilewright.spaces.target import Target
from tilewright.spaces.validation.canonical import canonical_json

FETCH_SECONDS = 60.0  # time binaries have to come from another host


class BuildWorker:
    """Builds for any target that its host can build for, once it was greeted."""

    def __init__(
        self, host_services: str, jobs: int, cpus: Sequence[int], takes_turns: bool
    ) -> None:
        self._name, self._jobs, self._cpus, self._takes_turns = (
            host_services,
            jobs,
            cpus,
            takes_turns,
        )
        self._builders: dict[str, Builder] = {}

    def hello(self) -> str:
        """Say who this is."""
        self._services = load_host_services(self._name)
        self._services.confine(self._cpus)
        return canonical_json({**_who(), "device": f"{self._jobs} compilers", "target": None})

    def build(self, request: str) -> tuple[str, list[bytes]]:
        """Build the candidates of a request; returns the answer and the binaries."""
        job, candidates = read_build_request(request)
        with _turn(fcntl.LOCK_EX, self._takes_turns):
            return build_answer(retrying.build(self._builder(job.target), candidates))

    def _builder(self, target: Target) -> Builder:
        known = self._builders
        if target.fingerprint not in known:
            known[target.fingerprint] = self._services.builder(target, self._jobs)
        return known[target.fingerprint]


class RunWorker:
    """Measures on one device: the GPU that Ray gave this process, or some cores of its host."""

    def __init__(
        self, host_services: str, kind: str, cpus: Sequence[int], takes_turns: bool
    ) -> None:
        self._name, self._kind, self._cpus, self._takes_turns = (
            host_services,
            kind,
            cpus,
            takes_turns,
        )
        self._runners: dict[str, Runner] = {}

    def hello(self) -> str:
        """Say who this is, and the target that its device is. :class:`InputError` if the device
        does not work."""
        self._services = load_host_services(self._name)
        self._device = self._services.device(self._kind)
        self._services.confine(self._cpus)
        self._label = _label(self._device, self._cpus)
        if self._kind != "cpu":
            self._runner(self._device)
        return canonical_json({**_who(), "device": self._label, "target": self._device.to_json()})

    def run(self, request: str, binaries: Sequence[Any]) -> str:
        """Measure the candidates of a request; ``binaries`` are references to the answers of
        builds.
        """
        import ray
        from ray.exceptions import RayError

        try:
            fetched = ray.get(list(binaries), timeout=FETCH_SECONDS)
        except RayError as error:
            return canonical_json({"missing": type(error).__name__})
        job, built = read_run_request(request, fetched)
        with _turn(fcntl.LOCK_SH, self._takes_turns):
            measured = self._runner(job.target).run(job, built)
        return run_answer([self._placed(m) for m in measured])

    def _runner(self, target: Target) -> Runner:
        known = self._runners
        if target.fingerprint not in known:
            known[target.fingerprint] = self._services.runner(target)
        return known[target.fingerprint]

    def _placed(self, measurement: Measurement) -> Measurement:
        return replace(measurement, place=replace(measurement.place, device=self._label))


def _who() -> dict[str, Any]:
    return {"host": platform.node(), "pid": os.getpid()}


def _label(device: Target, cpus: Sequence[int]) -> str:
    """Return the device's name, and which of several of the host it is."""
    import ray

    model = getattr(device, "model", device.kind)
    gpus = ray.get_gpu_ids()
    if gpus:
        return f"{model} {gpus[0]}"
    return f"{model} cpu {cpus[0]}-{cpus[-1]}" if cpus else str(model)


@contextmanager
def _turn(kind: int, takes_turns: bool) -> Iterator[None]:
    """Wait until nobody on this host builds (``LOCK_SH``), or builds or measures (``LOCK_EX``)."""
    if not takes_turns:
        yield
        return
    with open(cache_directory("turns") / "lock", "w") as lock:
        fcntl.flock(lock, kind)
        yield
