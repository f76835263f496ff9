"""Draw the rates of the steps as bars, a group of bars for each device that was measured."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.kernel_steps.steps import PRODUCTS
from experiments.ratios import FASTER, TEXT, text
from tilewright import workload

NAMES, BAR, RATES = 230, 330, 110
"""Pixels of a line's name, of the longest bar, and of the rate beside it."""
LINE, TITLE = 22, 34


def read(results: Path) -> list[Mapping[str, Any]]:
    """Return the results in a folder, of the devices that were measured."""
    devices = [results / f"{kind}.json" for kind in PRODUCTS]
    return [json.loads(path.read_text()) for path in devices if path.exists()]


def draw(devices: Sequence[Mapping[str, Any]]) -> str:
    """Return the picture of the results of some devices."""
    lines = sum(len(device["seconds"]) for device in devices)
    width, height = NAMES + BAR + RATES, lines * LINE + len(devices) * TITLE + 8
    drawn: list[str] = []
    top = 0.0
    for device in devices:
        drawn += _bars(device, top)
        top += TITLE + LINE * len(device["seconds"])
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="sans-serif" font-size="12" fill="{TEXT}">'
    )
    title = "<title>Rate of a product's kernel, step by step</title>"
    return "\n".join([head, title, *drawn, "</svg>"]) + "\n"


def _bars(device: Mapping[str, Any], top: float) -> Iterator[str]:
    flops = workload(device["product"]).flops
    rates = {name: flops / seconds / 1e9 for name, seconds in device["seconds"].items()}
    most = max(rates.values())
    yield text(8, top + 22, device["product"], "start", "bold")
    for number, (name, rate) in enumerate(rates.items()):
        y = top + TITLE + LINE * number
        yield text(NAMES - 10, y + 11, name, "end")
        yield (
            f'<rect x="{NAMES}" y="{y:.1f}" width="{BAR * rate / most:.1f}" height="14" '
            f'fill="{FASTER}"/>'
        )
        yield text(NAMES + BAR * rate / most + 6, y + 11, f"{rate:,.0f} GFLOP/s", "start")
