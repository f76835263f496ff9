"""Counts machine instructions in a kernel's code, to hold generated kernels to their quality.

Since Volta an instruction is 128 bits: bits 0 to 8 are the operation, 9 to 11 the form of its
operands, and memory operations keep their width in bits 73 to 75. The numbers were read from
code that NVIDIA's nvdisasm 13.5 names, for sm_80 to sm_90a.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator

_OPERATIONS = {
    0x009: "FMNMX",
    0x023: "FFMA",
    0x02B: "DFMA",
    0x037: "IMMA",
    0x03B: "LDSM",
    0x03C: "HMMA",
    0x044: "STSM",
    0x07A: "QMMA",
    0x108: "MUFU",
    0x181: "LDG",
    0x183: "LDL",
    0x184: "LDS",
    0x186: "STG",
    0x187: "STL",
    0x188: "STS",
    0x192: "MEMBAR",
    0x1AE: "LDGSTS",
    0x1B4: "UTMALDG",
    0x1B5: "UTMASTG",
    0x1B6: "UTMAREDG",
    0x1BD: "STAS",
    0x1C5: "WARPGROUP",
    0x1F0: "HGMMA",
    0x1F1: "IGMMA",
    0x1F3: "QGMMA",
}
_PREDICATE = 0xF000  # bits 12 to 15, all set: @!PT
_SIZED = frozenset({"LDG", "STG", "LDS", "STS", "LDL", "STL", "LDGSTS"})
_GPU_SCOPE = 1 << 13
_WARPGROUP_WAIT = 1 << 47  # set where a warpgroup waits for all but some groups of products
_WIDTHS = {0: 8, 1: 8, 2: 16, 3: 16, 4: 32, 5: 64, 6: 128}


def count(code: bytes) -> Counter[str]:
    """Return the occurrences of each known instruction in ``code``, by name.

    Loads and stores appear twice: under their name, and with their width in bits, so that
    ``LDG.128`` is one of the ``LDG``. All else is counted as ``other``. What never runs (the
    assembler puts such loads beside asynchronous copies) is left out.
    """
    found: Counter[str] = Counter()
    for low, high in _instructions(code):
        name = _OPERATIONS.get(low & 0x1FF, "other")
        found[name] += 1
        if name == "MEMBAR" and high & _GPU_SCOPE:
            found["MEMBAR.GPU"] += 1
        if name in _SIZED:
            found[f"{name}.{_WIDTHS.get(high >> 9 & 7, 0)}"] += 1
    return found


def in_order(code: bytes) -> list[str]:
    """Return the names of all instructions as they stand in ``code``; a warpgroup's wait for its
    products is ``WAIT n``, n being how many groups may be left."""
    return [_ordered_name(low, high) for low, high in _instructions(code)]


def _ordered_name(low: int, high: int) -> str:
    name = _OPERATIONS.get(low & 0x1FF, "other")
    return f"WAIT {high >> 8 & 7}" if name == "WARPGROUP" and low & _WARPGROUP_WAIT else name


def _instructions(code: bytes) -> Iterator[tuple[int, int]]:
    pairs = struct.iter_unpack("<QQ", code)
    return ((low, high) for low, high in pairs if low & _PREDICATE != _PREDICATE)
