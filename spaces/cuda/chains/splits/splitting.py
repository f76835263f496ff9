"""Decisions and rules on parts of keys: how many there are, and who merges them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.plan import Number, Plan
from tilewright.spaces.schedule import Value
from tilewright.spaces.template import Rule

MERGES = ("kernel", "last")
"""Values of ``merge`` for any GPU: a second kernel, or the last block to come, merges parts."""
EARLY = "early"
"""The value of ``merge`` for a second kernel that begins before the first one has ended, and
waits."""
CLUSTER = "cluster"
"""The value of ``merge`` for the blocks of a cluster, which exchange parts in shared memory."""
CLUSTERS = (2, 4, 8)
"""Numbers of blocks that any device with clusters starts together."""


class SplitKeys(Plan):
    """A base for plans of kernels whose keys may be split.

    They have the decisions ``splits`` and ``merge``.
    """

    values: Mapping[str, Value]

    split = Number("splits")
    """Parts that the keys of a tile of rows are split into."""

    @property
    def merges_later(self) -> bool:
        """True if a second kernel merges the parts."""
        return self.split > 1 and self.values["merge"] in (MERGES[0], EARLY)

    @property
    def begins_early(self) -> bool:
        """True if that kernel begins before all parts exist, and waits for them."""
        return self.split > 1 and self.values["merge"] == EARLY

    @property
    def is_cluster(self) -> bool:
        """True if the blocks of a cluster have a part each, and merge them there."""
        return self.split > 1 and self.values["merge"] == CLUSTER


def split_rules(
    keys: int, decided: Sequence[str], blocks: Callable[[Any], Any], most: int
) -> list[Rule]:
    """Return rules by which each part of ``keys`` has a tile, and no split is needless.

    Keys are split only where tiles of rows leave a device idle: ``decided`` and ``splits`` are the
    decisions that make ``blocks``; ``most`` blocks fill the device.
    """
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
    """Return the rule by which parts that a cluster merges have one of its blocks each."""
    return Rule(
        "cluster",
        ("splits", "merge"),
        lambda c: (c["merge"] != CLUSTER) | np.isin(c["splits"], CLUSTERS),
        lambda c: f"{c['splits']} blocks are no cluster; allowed: 2, 4 or 8",
    )


def own_pairs(pairs: int, sharers: int) -> int:
    """Return the accumulators along the columns that a sharer stores, if it stores any.

    ``sharers`` share ``pairs`` accumulators; those that store have equally many, so that none is
    left over.
    """
    least = max(ceil_div(pairs, sharers), 1)
    return next((n for n in range(least, pairs) if pairs % n == 0), pairs)


def receivers(pairs: int, sharers: int) -> int:
    """Return the number of sharers that store accumulators.

    One, if there are none and only rows have outputs.
    """
    return pairs // own_pairs(pairs, sharers) if pairs else 1


shares = np.vectorize(own_pairs, otypes=[np.int64])
storing = np.vectorize(receivers, otypes=[np.int64])
"""Both functions for arrays of ``pairs`` and ``sharers``."""
