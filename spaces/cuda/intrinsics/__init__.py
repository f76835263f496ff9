"""The functions that generated CUDA kernels call, for the device and for the emulator.

``README.md`` lists them. A kernel's text is the same for both; what goes in front of it is not.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tilewright.spaces.cuda.intrinsics.families import used

__all__ = ["device_text", "host_text"]


def device_text(source: str) -> str:
    """CUDA C++ that defines every intrinsic ``source`` calls, as inline PTX."""
    return _joined("device.cuh", [member.device() for member in used(source)])


def host_text(source: str) -> str:
    """C++ that defines them on top of the emulator's ``runtime.h``."""
    return _joined("host.h", [member.host() for member in used(source)])


def _joined(name: str, members: list[str]) -> str:
    if not members:
        return _file(name)
    return "\n".join([_file(name), "namespace tw {", *members, "}  // namespace tw", ""])


@cache
def _file(name: str) -> str:
    return (Path(__file__).parent / name).read_text()
