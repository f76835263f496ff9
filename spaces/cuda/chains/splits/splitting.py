"""Parts of the keys: how many a schedule asks for, who merges them, and what rules them out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.plan import Number, Plan
from tilewright.spaces.schedule import Value
from tilewright.spaces.template import Rule

MERGES = ("kernel", "last")
"""Who merges parts: a second kernel, or the last block to come."""
EARLY = "early"
"""Where kernels may begin before the last one has ended: a second one that does, and waits."""
CLUSTER = "cluster"
"""Blocks of one cluster, which exchange their parts in shared memory."""
CLUSTERS = (2, 4, 8)
"""Blocks that any device with clusters starts together."""


class SplitKeys(Plan):
    """A base for plans of kernels whose keys may be split, by their decisions ``splits`` and
    ``merge``."""

    values: Mapping[str, Value]

    split = Number("splits")
    """Parts that the keys of a tile of rows are split into."""

    @property
    def merges_later(self) -> bool:
        """Whether a second kernel merges the parts."""
        return self.split > 1 and self.values["merge"] in (MERGES[0], EARLY)

    @property
    def begins_early(self) -> bool:
        """Whether that begins before all parts are there, and waits for them."""
        return self.split > 1 and self.values["merge"] == EARLY

    @property
    def is_cluster(self) -> bool:
        """Whether the blocks of a cluster have a part each, and merge them there."""
        return self.split > 1 and self.values["merge"] == CLUSTER


def split_rules(
    keys: int, decided: Sequence[str], blocks: Callable[[Any], Any], most: int
) -> list[Rule]:
    """Each part of ``keys`` has a tile, and keys are split only where tiles of rows leave a device
    idle: ``decided`` and ``splits`` are the decisions that make ``blocks``; ``most`` blocks fill
    it."""
    return [
        Rule(
            "split_filled",
            ("keys", "splits"),
            lambda c: (c["splits"] == 1) | (c["splits"] * c["keys"] <= keys),
            lambda c: f"{c['splits']} parts of at least {c['keys']} keys are more than {keys} keys",
        ),
        Rule(
            "needless_split",
            (*decided, "splits"),
            lambda c: (c["splits"] == 1) | (blocks(c) <= most),
            lambda c: f"{c['splits']} parts make {blocks(c)} blocks; {most} fill the device",
        ),
    ]


def cluster_rule() -> Rule:
    """Parts that a cluster merges have a block of it each."""
    return Rule(
        "cluster",
        ("splits", "merge"),
        lambda c: (c["merge"] != CLUSTER) | np.isin(c["splits"], CLUSTERS),
        lambda c: f"{c['splits']} blocks are no cluster; allowed: 2, 4 or 8",
    )


def own_pairs(pairs: int, sharers: int) -> int:
    """Of so many accumulators along the columns, those that one of ``sharers`` stores, if it stores
    any: as many as leave none over."""
    least = max(ceil_div(pairs, sharers), 1)
    return next((n for n in range(least, pairs) if pairs % n == 0), pairs)


def receivers(pairs: int, sharers: int) -> int:
    """Sharers that store accumulators; one, if there are none and only rows have outputs."""
    return pairs // own_pairs(pairs, sharers) if pairs else 1


shares = np.vectorize(own_pairs, otypes=[np.int64])
storing = np.vectorize(receivers, otypes=[np.int64])
"""The same of many."""
