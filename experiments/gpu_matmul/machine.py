"""Describes the machine and the software that figures of a GPU are measured with."""

from __future__ import annotations

import datetime
import os
from importlib import metadata
from pathlib import Path
from typing import Any

from tilewright.measure.cuda.launching import bindings, checked
from tilewright.scheduler.doctor import diagnose
from tilewright.spaces.target import Target

DRIVER = Path("/proc/driver/nvidia/version")


def machine(target: Target) -> dict[str, Any]:
    """Describe the GPU and the versions that the numbers are measured with."""
    versions = {}
    for package in ("torch", "triton", "cuda-bindings", "nvidia-cuda-nvrtc", "nvidia-cublas"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "absent"
    return {
        "date": today(),
        "target": target.to_json(),
        "packages": versions,
        "driver": DRIVER.read_text().splitlines()[0] if DRIVER.exists() else "unknown",
        "doctor": [f"{f.name}: {f.state}: {f.text}" for f in diagnose()],
    }


def visible_gpus() -> list[str]:
    """Return the GPUs of this machine, as CUDA_VISIBLE_DEVICES names them."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named:
        return named.split(",")
    return [str(ordinal) for ordinal in range(checked(bindings().cuDeviceGetCount()))]


def today() -> str:
    """Return the date."""
    return datetime.date.today().isoformat()
