"""Rules on how operands are read and the output is written, which depend on their layouts."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.spaces.cuda.blocks.implicit import ImplicitProduct, Tiled
from tilewright.spaces.cuda.hopper.fetched import fetched_of
from tilewright.spaces.cuda.hopper.images import images_of, images_of_factor, why_no_placed_output
from tilewright.spaces.cuda.hopper.places import whole_channels
from tilewright.spaces.cuda.hopper.segments import trims_of
from tilewright.spaces.cuda.hopper.sizes import TILE, HopperSizes
from tilewright.spaces.cuda.hopper.split import WAYS
from tilewright.spaces.cuda.hopper.tile import WIDEST_SWIZZLE, why_no_tensor_map
from tilewright.spaces.template import Rule


def window_rules(product: ImplicitProduct) -> list[Rule]:
    """Return rules by which a step of the depth lies within one point of a window."""
    channels = whole_channels(product)
    if not channels:
        return _panel_rules(product)
    return [
        *_panel_rules(product),
        Rule(
            "channels",
            ("depth",),
            lambda c: channels % c["depth"] == 0,
            lambda c: f"steps of {c['depth']} terms do not divide the {channels} channels",
        ),
    ]


def _panel_rules(product: ImplicitProduct) -> list[Rule]:
    """Return rules by which a panel of a tile lies within one image."""
    return [
        _panel_rule(operand.name, images.columns, rank, operand.element.bytes)
        for rank, operand in enumerate((product.left, product.right))
        if (images := images_of_factor(product.gathered[rank]))
    ]


def _panel_rule(name: str, pixels: int, rank: int, size: int) -> Rule:
    def panel(c: Any) -> Any:
        along = np.where(c["swap_ab"] ^ bool(rank), c["block_n"], c["block_m"])
        return np.gcd(along * size, WIDEST_SWIZZLE) // size

    return Rule(
        f"images_{rank}",
        ("block_m", "block_n", "swap_ab"),
        lambda c: pixels % panel(c) == 0,
        lambda c: f"{panel(c)} pixels of {name} that are loaded at a time do not divide {pixels}",
    )


def segment_rules(product: Tiled) -> list[Rule]:
    """Return rules for rows in segments.

    Tiles that are neighbours along the rows may belong to two segments, so they share no operand.
    """
    return [
        *(_trimming_rules() if trims_of(product) else ()),
        Rule(
            "segment_cluster",
            ("swap_ab", "cluster"),
            lambda c: c["cluster"] != np.where(c["swap_ab"], "1x2", "2x1"),
            lambda c: (
                f"tiles of a cluster {c['cluster']} may be of two segments of rows; "
                f"allowed: 1x1, {'2x1' if c['swap_ab'] else '1x2'}"
            ),
        ),
    ]


def _trimming_rules() -> list[Rule]:
    return [
        Rule(
            "trimmed_rows",
            ("swap_ab", "tail_rows"),
            lambda c: (c["tail_rows"] == 0) | c["swap_ab"],
            lambda c: "tiles are trimmed along n; swapped, rows are there",
        ),
        Rule(
            "trimmed_parts",
            ("block_n", "tail_rows"),
            lambda c: (
                (c["tail_rows"] == 0)
                | (c["block_n"] % np.maximum(c["tail_rows"], 1) == 0)
                & (c["tail_rows"] < c["block_n"])
            ),
            lambda c: f"a tile of {c['block_n']} is no whole 2 or more parts of {c['tail_rows']}",
        ),
    ]


def store_rules(sizes: HopperSizes) -> list[Rule]:
    """Return rules by which outputs are staged in shared memory only where TMA can write them."""
    product = sizes.product
    reason = _why_not_staged(product)
    return [
        Rule(
            "store_buffers",
            ("store_buffers",),
            lambda c: (c["store_buffers"] == 0) | (reason is None),
            lambda c: f"the output cannot go through shared memory: {reason}",
        ),
        *(_image_rules(sizes, product) if isinstance(product, ImplicitProduct) else ()),
    ]


def _why_not_staged(product: Tiled) -> str | None:
    """Return why outputs cannot go through shared memory, in words; None if they can."""
    outputs = [written.array for written in product.written]
    for output in outputs:
        if output.element.bytes not in (2, 4):
            return f"{output.name} is {output.dtype}; elements of 2 or 4 bytes are staged"
    if len({output.element.bytes for output in outputs}) > 1:
        kinds = " and ".join(output.dtype for output in outputs)
        return f"outputs are {kinds}; elements of one size share buffers"
    if isinstance(product, ImplicitProduct):
        several = "one output in places is staged" if len(outputs) > 1 else None
        return several or why_no_placed_output(product)
    return next(filter(None, map(why_no_tensor_map, outputs)), None)


def _image_rules(sizes: HopperSizes, product: ImplicitProduct) -> list[Rule]:
    """Return rules by which the columns that TMA stores at a time lie within one image."""
    images = images_of(product)
    if images is None or images.count == 1:
        return []
    return [
        Rule(
            "staged_images",
            ("block_n", "swap_ab", "store_buffers"),
            lambda c: (c["store_buffers"] == 0) | (images.columns % sizes.panel(c) == 0),
            lambda c: (
                f"{sizes.panel(c)} columns of {product.output.name} that are stored at a time do "
                f"not divide the {images.columns} of an image"
            ),
        )
    ]


def fetch_rules(sizes: HopperSizes) -> list[Rule]:
    """Return rules for an operand that is fetched into the buffers in which whole sums leave."""
    if fetched_of(sizes.product) is None:
        return []
    return [
        Rule(
            "fetched_buffers",
            (*TILE, "schedule", "consumers", "fetch", "store_buffers"),
            lambda c: np.logical_not(c["fetch"]) | (c["store_buffers"] == sizes.chunks(c)),
            lambda c: (
                f"a warpgroup finishes {sizes.chunks(c)} chunks in {c['store_buffers']} buffers; "
                "what is fetched needs a buffer for each"
            ),
        ),
        Rule(
            "fetched_sums",
            ("merge", "fetch"),
            lambda c: np.logical_not(c["fetch"]) | (c["merge"] == WAYS[0]),
            lambda c: "nothing is fetched for sums that clusters exchange",
        ),
        Rule(
            "fetched_parts",
            ("fetch", "splits"),
            lambda c: np.logical_not(c["fetch"]) | (c["splits"] == 1),
            lambda c: f"nothing is fetched for {c['splits']} parts of a tile; allowed: 1",
        ),
    ]
