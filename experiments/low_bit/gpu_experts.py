"""Experts with weights of few bits on a GPU, beside torch's grouped product in bfloat16 and cuBLAS'
products one after the other.

Launches of a CUDA graph take tables in turns, which choose other experts: few tokens read other
weights each time, which are in no cache.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil

import numpy as np
import torch

from experiments.low_bit.formats import BIAS, Format
from experiments.low_bit.gpu import COLD_BYTES, COPY, KIND, Contest, Inputs, Tuned, compare, rivals
from experiments.low_bit.routing import Layer, segments
from tilewright import pack
from tilewright.scheduler.torch.backend.replays import replayed
from tilewright.spaces.dtypes import dtype

SHAPES = tuple(f"{tokens}x8x256x7168x2048" for tokens in (1, 16, 256, 4096))
FORMATS = ("uint4",)
SECONDS = 60.0
"""Seconds of search of each format."""
MOST_TABLES = 16
GROUPED, LOOP = "torch grouped mm", "torch mm by experts"
BESIDE = {"grouped over ours": GROUPED, "mm over ours": LOOP}


def main(asked: argparse.Namespace) -> None:
    """Compare all formats for each layer and number of tokens."""
    for text in asked.shape:
        Layer.read(text)
    compare(asked, ExpertContest, BESIDE)


@dataclass(frozen=True)
class Weights:
    """Random weights of all experts: their ``codes``, the same ``packed``, and ``scales``."""

    form: Format
    codes: torch.Tensor
    packed: torch.Tensor
    scales: torch.Tensor

    @staticmethod
    def draw(name: str, experts: int, columns: int, depth: int, device: str = "cuda") -> Weights:
        """Return weights of a format."""
        form = Format(name)
        finite = np.flatnonzero(np.isfinite(dtype(form.dtype).values)).astype("u1")
        numbers = torch.randint(
            len(finite), (experts, columns, depth), device=device, dtype=torch.uint8
        )
        whole = len(finite) == 2 ** dtype(form.dtype).bits
        codes = numbers if whole else torch.from_numpy(finite).to(device)[numbers.int()]
        groups = (experts, depth // form.group, columns)
        if form.has_powers:
            scales = torch.randint(BIAS - 7, BIAS + 1, groups, device=device, dtype=torch.uint8)
        else:
            scales = ((1 + torch.rand(groups, device=device)) / 64).to(torch.bfloat16)
        return Weights(form, codes, pack(codes, form.dtype), scales)

    def wide(self, expert: int) -> torch.Tensor:
        """Return the weight of an expert in float64, ``[columns, depth]``."""
        scales = self.scales[expert].double()
        scales = torch.exp2(scales - BIAS) if self.form.has_powers else scales
        values = torch.from_numpy(dtype(self.form.dtype).values - self.form.zero)
        found = values.to(self.codes.device)[self.codes[expert].int()]
        return found * scales.t().repeat_interleave(self.form.group, 1)

    @cached_property
    def halves(self) -> torch.Tensor:
        """All weights in bfloat16, ``[experts, columns, depth]``."""
        found = torch.empty(self.codes.shape, device=self.codes.device, dtype=torch.bfloat16)
        for expert in range(len(found)):
            found[expert] = self.wide(expert)
        return found

    def product(self, a: torch.Tensor, table: np.ndarray) -> torch.Tensor:
        """Return the exact product of rows in float64."""
        shape = (len(a), self.codes.shape[1])
        found = torch.empty(shape, device=a.device, dtype=torch.float64)
        for expert, first, end in segments(table):
            torch.mm(a[first:end].double(), self.wide(expert).t(), out=found[first:end])
        return found


weights = lru_cache(maxsize=1)(Weights.draw)


@dataclass(frozen=True)
class ExpertContest(Contest):
    """A number of tokens of a layer with weights of all formats called ``names``."""

    @cached_property
    def layer(self) -> Layer:
        """The layer, with its tokens."""
        return Layer.read(self.text)

    @cached_property
    def activations(self) -> torch.Tensor:
        """Random rows."""
        return torch.randn(self.layer.rows, self.layer.depth, device="cuda").to(torch.bfloat16)

    def weights(self, name: str) -> Weights:
        """Return the weights of a format, alike for all numbers of tokens."""
        return weights(name, self.layer.experts, self.layer.columns, self.layer.depth)

    def tuned(self, name: str) -> Tuned:
        """Return the product with weights of a format, and rows by the first table."""
        layer, own, a = self.layer, self.weights(name), self.activations
        asked = Format(name).product(layer.rows, layer.columns, layer.depth, KIND, layer.experts)
        table = layer.table(0)
        tensors = {"e": torch.from_numpy(table).cuda(), "q": own.packed, "a": a, "s": own.scales}
        given = (tensors, own.product(a, table))
        found = Tuned(name, asked, given, self.target, self.known)
        found.bytes = self.moved(own)
        return found

    def moved(self, own: Weights) -> int:
        """Return the bytes that a launch reads and writes at least: weights of experts with rows
        alone."""
        each = (own.packed.nbytes + own.scales.nbytes) // self.layer.experts
        counts = [len(np.unique(table)) for table in self.tables]
        outputs = self.layer.rows * self.layer.columns * self.activations.element_size()
        return round(np.mean(counts)) * each + self.activations.nbytes + outputs

    @cached_property
    def tables(self) -> list[np.ndarray]:
        """Tables of rows, so many that weights of 4 bits are in no cache when a table's turn comes
        again."""
        layer = self.layer
        used = len(np.unique(layer.table(0))) * layer.columns * layer.depth // 2
        return [
            layer.table(seed) for seed in range(min(max(2, ceil(COLD_BYTES / used)), MOST_TABLES))
        ]

    def inputs(self, tuned: Tuned) -> Inputs:
        """Return the inputs with each table."""
        turns = ({**tuned.tensors, "e": torch.from_numpy(table).cuda()} for table in self.tables)
        return [list(tensors.values()) for tensors in turns]

    def rivals(self) -> dict[str, Callable[[], Callable[[], float]]]:
        """Return makers of timers of torch's products in bfloat16, and of a copy."""
        halves, a = self.weights(self.names[0]).halves, self.activations

        def grouped() -> Callable[[], float]:
            ends = [[_ends(table, len(halves))] for table in self.tables]
            turned = halves.transpose(1, 2)
            return replayed(lambda each: torch._grouped_mm(a, turned, offs=each[0]), ends)

        def loop() -> Callable[[], float]:
            out = torch.empty(len(a), halves.shape[1], device="cuda", dtype=torch.bfloat16)
            parts = [list(segments(table)) for table in self.tables]

            def call(each: Sequence[tuple[int, int, int]]) -> None:
                for expert, first, end in each:
                    torch.mm(a[first:end], halves[expert].t(), out=out[first:end])

            return replayed(call, parts)

        return {GROUPED: grouped, LOOP: loop, COPY: rivals((1, 256, 256))[COPY]}


def _ends(table: np.ndarray, experts: int) -> torch.Tensor:
    """Return the row at which the rows of each expert end."""
    counts = np.bincount(table, minlength=experts)
    return torch.from_numpy(np.cumsum(counts).astype(np.int32)).cuda()
