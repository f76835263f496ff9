"""What rules out parts of the keys, and the sentence that says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spaces.template import Rule


def split_rules(
    keys: int, decided: Sequence[str], blocks: Callable[[Any], Any], most: int
) -> list[Rule]:
    """Each part of ``keys`` has a tile, and there are parts only where tiles of rows leave a device
    idle: the decisions ``decided`` and ``split`` make the ``blocks``, of which ``most`` fill it."""
    return [
        Rule(
            "split_filled",
            ("keys", "split"),
            lambda c: (c["split"] == 1) | (c["split"] * c["keys"] <= keys),
            lambda c: f"{c['split']} parts of at least {c['keys']} keys are more than {keys} keys",
        ),
        Rule(
            "needless_split",
            (*decided, "split"),
            lambda c: (c["split"] == 1) | (blocks(c) <= most),
            lambda c: f"{c['split']} parts make {blocks(c)} blocks; {most} fill the device",
        ),
    ]
