"""Rules on where elements stay, on registers and shared memory, and on the size of the code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.spaces.cuda.residency import resident_threads, storage_rules
from tilewright.spaces.cuda.rows.sizes import RowSizes
from tilewright.spaces.cuda.rows.source import widest
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.rules.early import judged_early
from tilewright.spaces.template import Decision, Rule

MOST_ELEMENTS = 256
"""The most elements that unrolled code of a thread names: more outgrow the instruction cache."""


def hold_rules(sizes: RowSizes) -> list[Rule]:
    """Return rules on what can be copied, read ahead, unpacked again, or streamed past caches."""
    held = [sizes.rows.program.operand[r.name].element.bytes for r in sizes.plain.repeated]
    return [
        *(
            Rule(
                "copies",
                reads,
                lambda c: (
                    np.logical_not(sizes.copied({"stages": 1, **c}))
                    | np.logical_and.reduce([np.isin(c["vector"] * b, (4, 8, 16)) for b in held])
                ),
                lambda c: (
                    f"vectors of {c['vector']} elements are not copied to shared memory; "
                    "allowed: 4, 8 or 16 bytes"
                ),
            )
            for reads in (("vector", "row_storage"), ("vector", "row_storage", "stages"))
        ),
        *_side_by_side(sizes),
        Rule(
            "prefetch",
            ("row_storage", "prefetch"),
            lambda c: (c["prefetch"] == 0) | (c["row_storage"] == "registers"),
            lambda c: "only registers hold what outputs alone read",
        ),
        Rule(
            "convert",
            ("row_storage", "vector", "convert"),
            lambda c: (
                (c["convert"] == "once") | (c["row_storage"] == "registers") & (c["vector"] > 1)
            ),
            lambda c: "only pairs that registers hold are unpacked again",
        ),
        Rule(
            "streams",
            ("vector", "loads"),
            lambda c: (c["loads"] == "cached") | (c["vector"] * sizes.element_bytes >= 8),
            lambda c: "loads of less than 8 bytes are cached",
        ),
        Rule(
            "wide_stores",
            ("vector", "stores"),
            lambda c: (c["stores"] == "cached") | (c["vector"] * sizes.element_bytes >= 8),
            lambda c: "stores of less than 8 bytes are cached",
        ),
    ]


def _side_by_side(sizes: RowSizes) -> list[Rule]:
    """Return rules by which a copy moves a whole vector of aligned neighbours."""
    places = {r: widest(sizes.rows.places[r], sizes.rows.columns) for r in sizes.plain.repeated}
    own = min((w for r, w in places.items() if r not in sizes.common), default=MOST_ELEMENTS)
    every = min(places.values(), default=MOST_ELEMENTS)

    def most(c: Any) -> Any:
        return np.where(sizes.keeps_common({"row_invariants": "kept", **c}), own, every)

    return [
        Rule(
            "copied_neighbours",
            reads,
            lambda c: np.logical_not(sizes.copied({"stages": 1, **c})) | (c["vector"] <= most(c)),
            lambda c: (
                f"vectors of {c['vector']} elements are not copied to shared memory; "
                f"up to {most(c)} lie side by side and aligned in what is used repeatedly"
            ),
        )
        for reads in (
            ("vector", "row_storage"),
            ("vector", "row_storage", "stages"),
            ("vector", "row_storage", "stages", "row_invariants"),
        )
    ]


def size_rules(sizes: RowSizes, target: CudaTarget, decisions: Sequence[Decision]) -> list[Rule]:
    """Return rules by which registers, shared memory and the instruction cache suffice."""
    order = ("vector", "row_threads", "block_rows", "thread_rows", "cluster", "row_storage")
    more = (
        *order,
        "convert",
        "passes",
        "prefetch",
        "unroll",
        "blocks_per_sm",
        "stages",
        "row_invariants",
    )
    least = {decision.name: decision.values[0] for decision in decisions}
    least["row_storage"] = "memory"
    resources = [resident_threads(sizes, target), *storage_rules(sizes, target)]
    judged = [
        rule
        for n in (4, 6, 7, 9, 10, 11, 12, 13)
        for rule in judged_early(resources, more[:n], least)
    ]
    return [*judged, *_step_rules(sizes)]


def _step_rules(sizes: RowSizes) -> list[Rule]:
    """Return rules on how many vectors a step has, and how many elements are unrolled."""
    reads = ("vector", "row_threads", "thread_rows", "cluster", "row_storage", "unroll")

    def written(c: Any) -> Any:
        return sizes.at_once(c) * c["vector"] * c["thread_rows"]

    return [
        Rule(
            "unroll",
            reads,
            lambda c: (
                (c["unroll"] == 1)
                | ((c["row_storage"] != "registers") & (c["unroll"] < 2 * sizes.turns(c)))
            ),
            lambda c: (
                f"a thread has {sizes.turns(c)} vectors of a row, held in {c['row_storage']}; "
                f"{c['unroll']} are not read at once"
            ),
        ),
        *(
            Rule(
                "code_size",
                reads[:n],
                lambda c: written({"unroll": 1, **c}) <= MOST_ELEMENTS,
                lambda c: (
                    f"a thread's code would write out {written(c)} elements; "
                    f"allowed: {MOST_ELEMENTS}"
                ),
            )
            for n in (5, 6)
        ),
    ]
