"""The intrinsics that generated CUDA kernels call, for the device and for the emulator.

``README.md`` lists them. A kernel's text is the same for both; only the definitions in front of it
differ.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tilewright.spaces.cuda.intrinsics.families import used

__all__ = ["device_text", "host_text"]


def device_text(source: str) -> str:
    """Return CUDA C++ that defines every intrinsic that ``source`` calls, as inline PTX."""
    return _joined("device.cuh", [member.device() for member in used(source)])


def host_text(source: str) -> str:
    """Return C++ that defines these intrinsics on top of the emulator's ``runtime.h``."""
    return _joined("host.h", [member.host() for member in used(source)])


def _joined(name: str, members: list[str]) -> str:
    if not members:
        return _file(name)
    return "\n".join([_file(name), "namespace tw {", *members, "}  // namespace tw", ""])


@cache
def _file(name: str) -> str:
    return (Path(__file__).parent / name).read_text()
