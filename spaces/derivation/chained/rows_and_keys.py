"""Parts that views of pairs of rows and keys share: places of reads, and the pairs that count."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.derivation.products.addresses import Address
from tilewright.spaces.derivation.products.reach import Reach
from tilewright.spaces.derivation.products.splitting import Indexing, Part
from tilewright.spaces.language.program import Program
from tilewright.spaces.language.tree import Comparison, Read


@dataclass(frozen=True)
class RowsAndKeys(ABC):
    """A program over pairs of a row and a key, for each of some products.

    Operands are read at ``places``. A key counts for a row where no form of ``bounds`` is negative
    and all ``conditions`` hold.
    """

    program: Program
    indexing: Indexing
    batch: tuple[Part, ...]
    rows: tuple[Part, ...]
    key: Part
    bounds: tuple[Index, ...]
    conditions: tuple[Comparison, ...]
    places: Mapping[Read, Address]

    @property
    @abstractmethod
    def offsets(self) -> tuple[Index, ...]:
        """The places of outputs."""

    @property
    def batches(self) -> int:
        """The number of products."""
        return prod(part.extent for part in self.batch)

    @property
    def row_count(self) -> int:
        """Rows of each product, those of all heads that share its keys."""
        return prod(part.extent for part in self.rows)

    @cached_property
    def has_far_bounds(self) -> bool:
        """Tell whether bounds of keys may exceed 32 bits before they are clipped to the keys that
        exist.
        """
        reach = Reach(self.program)
        return not reach.are_narrow(self.bounds)

    def step(self, read: Read, part: Part) -> int:
        """Return the elements from one point of ``part`` to the next, where ``read`` has its
        element."""
        return self.places[read].offset.coefficient(part.name)
