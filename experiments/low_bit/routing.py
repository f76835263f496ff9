"""Rows of tokens by experts: each token has several experts, and rows are sorted by theirs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tilewright.spaces.errors import InputError


@dataclass(frozen=True)
class Layer:
    """``tokens`` that have ``chosen`` of ``experts`` each, with weights of so many ``columns`` and
    of the ``depth``."""

    tokens: int
    chosen: int
    experts: int
    columns: int
    depth: int

    @staticmethod
    def read(text: str) -> Layer:
        """Return the layer of five numbers; :class:`InputError` for anything else."""
        sizes = text.split("x")
        if len(sizes) != 5 or not all(each.isdecimal() and int(each) for each in sizes):
            allowed = "TOKENSxCHOSENxEXPERTSxCOLUMNSxDEPTH, all above 0"
            raise InputError(f"{text} is no layer of experts; allowed: {allowed}")
        found = Layer(*map(int, sizes))
        if found.chosen > found.experts:
            raise InputError(f"{found.chosen} of {found.experts} experts; allowed: at most all")
        return found

    @property
    def rows(self) -> int:
        """Rows of all experts."""
        return self.tokens * self.chosen

    def table(self, seed: int) -> np.ndarray:
        """Return the expert of each row, sorted (int32). Each token has different ones, all as
        likely."""
        generator = np.random.default_rng(seed)
        drawn = generator.random((self.tokens, self.experts)).argsort(1)[:, : self.chosen]
        return np.sort(drawn, axis=None).astype(np.int32)


def segments(table: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """Yield each expert that has rows, its first row and the end of its rows."""
    experts, first = np.unique(table, return_index=True)
    for expert, (begin, end) in zip(experts, pairwise([*first, len(table)]), strict=True):
        yield int(expert), int(begin), int(end)
