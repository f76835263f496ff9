"""Read a kernel's resources from a cubin: registers, stack, shared memory, barriers. No GPU needed.

A cubin is an ELF file; the facts stand in its ``.nv.info`` sections as records of a format byte,
an attribute byte and a value (attributes as named by ``cuobjdump -elf``).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

_MAGIC = b"\x7fELF"
_SIZED = 4  # format of a record whose 16-bit field is the length of the value after it
_REGISTERS, _FRAME, _BARRIERS = 0x2F, 0x11, 0x4C
_SYSTEM_BYTES = 1024  # sm_90 counts the shared memory that belongs to the system
_SYSTEM_SECTION = ".nv.shared.reserved.0"


class _Section(NamedTuple):
    """A row of ELF's section table (System V ABI, "Section Header")."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


@dataclass(frozen=True)
class Cubin:
    """One kernel of a cubin. ``code`` is its machine code; bytes are per block or thread."""

    registers: int
    stack_bytes: int
    shared_bytes: int  # static; what a launch asks for comes on top
    barriers: int
    code: bytes


def read_cubin(data: bytes, entry: str) -> Cubin:
    """Read the resources of the kernel ``entry`` from ``data``; ValueError if it is not there."""
    if data[:4] != _MAGIC:
        raise ValueError("this is no cubin: it does not start as an ELF file does")
    sections = _sections(data)
    if f".text.{entry}" not in sections:
        raise ValueError(f"the cubin holds no kernel {entry!r}")
    symbol = _symbols(data, sections).index(entry)
    facts = {
        attribute: value
        for attribute, index, value in _global_records(data, sections[".nv.info"])
        if index == symbol
    }
    local = sections.get(f".nv.info.{entry}")
    barriers = dict(_records(data, local)).get(_BARRIERS, 0) if local else 0
    shared = sections[f".nv.shared.{entry}"].size if f".nv.shared.{entry}" in sections else 0
    code = sections[f".text.{entry}"]
    return Cubin(
        registers=facts.get(_REGISTERS, 0),
        stack_bytes=facts.get(_FRAME, 0),
        shared_bytes=max(0, shared - _SYSTEM_BYTES if _SYSTEM_SECTION in sections else shared),
        barriers=barriers if isinstance(barriers, int) else 0,
        code=data[code.offset : code.offset + code.size],
    )


def _sections(data: bytes) -> dict[str, _Section]:
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    rows = [
        _Section(*struct.unpack_from("<IIQQQQIIQQ", data, table + i * size)) for i in range(count)
    ]
    return {_text(data, rows[names].offset + row.name): row for row in rows}


def _symbols(data: bytes, sections: dict[str, _Section]) -> list[str]:
    """Return the names in the order of the symbol table."""
    table, names = sections[".symtab"], sections[".strtab"]
    starts = range(table.offset, table.offset + table.size, table.entry_size)
    return [_text(data, names.offset + struct.unpack_from("<I", data, i)[0]) for i in starts]


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()


def _records(data: bytes, section: _Section) -> Iterator[tuple[int, int | bytes]]:
    """Attribute and value: a number, or bytes where the record is longer."""
    at, end = section.offset, section.offset + section.size
    while at < end:
        kind, attribute, field = struct.unpack_from("<BBH", data, at)
        at += 4
        if kind == _SIZED:
            yield attribute, data[at : at + field]
            at += field
        else:
            yield attribute, field


def _global_records(data: bytes, section: _Section) -> Iterator[tuple[int, int, int]]:
    """Attribute, symbol and value of the records that speak of a function."""
    for attribute, value in _records(data, section):
        if isinstance(value, bytes) and len(value) == 8:
            symbol, number = struct.unpack("<II", value)
            yield attribute, symbol, number
