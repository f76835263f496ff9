"""Kernels that travel with a package: a table in JSON of keys, schedules and binaries."""

from __future__ import annotations

import ctypes
import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tilewright.measure.cpu.binaries import kernel_binary, pool_binary
from tilewright.measure.host.loading import sealed_file
from tilewright.scheduler.functions.shipped import ShippedFunction
from tilewright.scheduler.torch.kernels.functions import functions, workload_of
from tilewright.spaces.cpu.machine import cpu_flags
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import target_from_json

FORMAT = 1


def table(places: Mapping[str, tuple[str, int]]) -> str:
    """Return the kernels of these keys as text, each of a kind of target and a number of threads.
    Those of GPUs are left out: their drivers compile them."""
    kernels = []
    for key, (kind, threads) in places.items():
        if kind == "cpu":
            kernels.append(_described(key, functions.get(key, kind, threads)))
    flags = sorted(cpu_flags())
    pool = _text(pool_binary()) if kernels else ""
    return json.dumps({"format": FORMAT, "cpu_flags": flags, "pool": pool, "kernels": kernels})


def _described(key: str, function: Any) -> dict[str, Any]:
    """Return a kernel as whoever reads the key writes it: names in its text may differ from the one
    that was measured."""
    source = space_for(workload_of(key), function.target).lower(function.schedule).source
    return {
        "key": key,
        "target": function.target.to_json(),
        "schedule": function.schedule.to_json(),
        "provenance": str(function.provenance),
        "source": _digest(source.text),
        "binary": _text(kernel_binary(source, function.target)),
    }


def take(text: str) -> None:
    """Let calls run the kernels of a table, as far as this machine has what they need."""
    try:
        told = json.loads(text)
        version, flags, kernels = told["format"], set(told["cpu_flags"]), told["kernels"]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"a malformed table of kernels: {type(error).__name__}") from None
    if version != FORMAT:
        raise InputError(f"kernels in format {shown(version)}; allowed: {FORMAT}")
    if not kernels or not flags <= cpu_flags():
        return
    pool = _loaded(told["pool"])
    for each in kernels:
        with suppress(InputError):  # of another version of its template: torch computes it
            functions.offer(each["key"], _function(each, pool))


def _function(told: Mapping[str, Any], pool: ctypes.CDLL) -> ShippedFunction:
    """Return the function of a kernel; :class:`InputError` if this version writes another one."""
    space = space_for(workload_of(told["key"]), target_from_json(told["target"]))
    schedule = space.ordered(Schedule.from_json(told["schedule"]))
    if schedule not in space or _digest(space.lower(schedule).source.text) != told["source"]:
        raise InputError(f"{space.workload}: its kernel is of another version")
    return ShippedFunction(space, schedule, told["provenance"], _loaded(told["binary"]), pool)


def _loaded(binary: str) -> ctypes.CDLL:
    with sealed_file(b64decode(binary)) as path:
        return ctypes.CDLL(path)


def _text(binary: bytes) -> str:
    return b64encode(binary).decode()


def _digest(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()
