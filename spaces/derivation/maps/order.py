"""The order in which tiles of a map follow each other, whatever the target."""

from __future__ import annotations

from tilewright.spaces.derivation.maps.plane import Plane
from tilewright.spaces.template import Rule

ROWS, COLUMNS = "rows", "columns"
"""Values of the decision ``order``: the tiles of a plane follow each other along one of these."""


def order_rule(plane: Plane) -> Rule:
    """Only tiles along both have two orders: the decisions ``tile_rows`` and ``tile_columns``."""
    return Rule(
        "needless_order",
        ("tile_rows", "tile_columns", "order"),
        lambda c: (
            (c["order"] == ROWS)
            | ((c["tile_rows"] < plane.height) & (c["tile_columns"] < plane.width))
        ),
        lambda c: "there are tiles along rows or along columns only: their order is one",
    )
