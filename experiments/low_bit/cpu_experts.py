"""Experts with weights of few bits on a CPU, beside torch's products by experts of 32 and 16 bits.

Calls take tables of rows in turns, which choose other experts.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from math import ceil
from typing import Any

import numpy as np
import torch

from experiments.low_bit.cpu import COLD_BYTES, Set, show
from experiments.low_bit.formats import BYTES, MXFP4, Format
from experiments.low_bit.routing import Layer, segments
from tilewright import Target, best, detect_target, pack, tune
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.errors import InputError

SHAPES = ("16x2x16x2048x1024",)
FORMATS = ("uint4",)
SECONDS = 20.0
"""Seconds of tuning of each format."""
MOST_TABLES = 32


def main(asked: argparse.Namespace) -> None:
    """Compare on one layer and number of tokens, print a line for each kernel, and write the
    results."""
    odd = [name for name in asked.dtypes if name.endswith(BYTES) or name == MXFP4]
    if len(asked.shape) > 1 or odd:
        given = f"{' '.join(asked.shape)} of {' '.join(asked.dtypes)}"
        raise InputError(f"{given}; allowed: one layer, floats beside codes with scales")
    torch.set_num_threads(1)
    layer, target = Layer.read(asked.shape[0]), detect_target("cpu", 1)
    sets = {f"torch {kind}": by_experts(layer, kind) for kind in ("float32", "bfloat16")}
    for name in asked.dtypes:
        sets[name] = ours(name, layer, target, asked.seconds, asked.db)
    show(asked, target, sets, {})


def tables(layer: Layer) -> list[np.ndarray]:
    """Return so many tables of rows that weights of 4 bits are in no cache when a table's turn
    comes again."""
    used = len(np.unique(layer.table(0))) * layer.columns * layer.depth // 2
    return [layer.table(seed) for seed in range(min(max(2, ceil(COLD_BYTES / used)), MOST_TABLES))]


def ours(name: str, layer: Layer, target: Target, seconds: float, database: str) -> Set:
    """Return calls of our kernel with codes of a dtype, checked against float64."""
    form, generator = Format(name), np.random.default_rng(0)
    asked = form.product(layer.rows, layer.columns, layer.depth, experts=layer.experts)
    if seconds:
        tune(asked, target, database, seconds=seconds)
    function = best(asked, target, database)
    shape = (layer.experts, layer.columns, layer.depth)
    a = generator.standard_normal((layer.rows, layer.depth)).astype("f4")
    groups = (layer.experts, layer.depth // form.group, layer.columns)
    scales = (generator.random(groups) / 64).astype("f4")
    codes = generator.integers(0, 2 ** dtype(form.dtype).bits, shape).astype("u1")
    packed, out = pack(codes, form.dtype), np.empty((layer.rows, layer.columns), "f4")
    values, known = dtype(form.dtype).values - form.zero, np.empty(out.shape)
    for expert, first, end in segments(layer.table(0)):
        wide = values[codes[expert]] * scales[expert].T.repeat(form.group, 1)
        known[first:end] = a[first:end].astype("f8") @ wide.T
    given = {"q": packed, "a": a, "s": scales}
    calls = [partial(_call, function, asked, {**given, "e": each}, out) for each in tables(layer)]
    calls[0]()
    np.testing.assert_allclose(out, known, atol=1e-5 * abs(known).max())
    return calls


def _call(function: Any, asked: Any, arrays: dict[str, np.ndarray], out: np.ndarray) -> None:
    function(*(arrays[operand.name] for operand in asked.inputs), out=out)


def by_experts(layer: Layer, kind: str) -> Set:
    """Return calls of torch's products, one for each expert that has rows, in a dtype."""
    generator, form = torch.Generator().manual_seed(0), getattr(torch, kind)
    shape = (layer.experts, layer.columns, layer.depth)
    weights = torch.randn(shape, generator=generator).to(form)
    a = torch.randn(layer.rows, layer.depth, generator=generator).to(form)
    out = torch.empty(layer.rows, layer.columns, dtype=form)

    def made(table: np.ndarray) -> Callable[[], None]:
        parts = list(segments(table))

        def call() -> None:
            for expert, first, end in parts:
                torch.mm(a[first:end], weights[expert].t(), out=out[first:end])

        return call

    return [made(table) for table in tables(layer)]
