"""Merge parts of a role that are adjacent in every array into one loop.

A token's batch and position count rows together if they are adjacent in all arrays, and so do the
heads of a group and their rows: one product of more rows replaces several that share their other
matrix.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.derivation.products.splitting import Part

Array = TypeVar("Array", bound=Hashable)


@dataclass(frozen=True)
class Loop(Generic[Array]):
    """A loop of ``extent`` turns, each of which advances reads and writes by ``strides`` elements;
    a stride is 0 where the loop does not matter.
    """

    extent: int
    strides: Mapping[Array, int] = field(hash=False)


def loops(parts: Sequence[Part], places: Mapping[Array, Index]) -> list[Loop[Array]]:
    """Merge ``parts`` into as few loops as can count all their points in order; elements of reads
    and writes are at ``places``. Parts with a single point are left out.
    """
    found: list[Loop[Array]] = []
    longer = [part for part in parts if part.extent > 1]
    for part in longer or parts[-1:]:
        strides = {read: index.coefficient(part.name) for read, index in places.items()}
        extent = part.extent
        if found and all(found[-1].strides[read] == s * extent for read, s in strides.items()):
            extent *= found.pop().extent
        found.append(Loop(extent, strides))
    return found
