"""The extents of tiles of a map, and their order, whatever the target."""

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


def covering(extent: int) -> int:
    """Return the least power of two that is not below an extent."""
    return 1 << (extent - 1).bit_length()


def extent_rules(plane: Plane, rows: tuple[int, int], columns: tuple[int, int]) -> list[Rule]:
    """Make the rules that keep the extents of tiles between the least and the most."""

    def within(name: str, side: str, extent: int, bounds: tuple[int, int]) -> Rule:
        decision, (least, most) = f"tile_{side}", bounds
        return Rule(
            name,
            (decision,),
            lambda c: (c[decision] >= least) & (c[decision] <= most),
            lambda c: f"a tile of {c[decision]} of {extent} {side}; allowed: {least} to {most}",
        )

    return [
        within("tile_height", "rows", plane.height, rows),
        within("tile_width", "columns", plane.width, columns),
    ]
