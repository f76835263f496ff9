"""Turn pictures into PNG by resvg, which needs no browser and no network."""

from __future__ import annotations

from functools import lru_cache

from tilewright.scheduler.extras import extra
from tilewright.spaces.errors import InputError

ZOOM = 2.0  # pixels of a unit of the picture
LETTER = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20">'
    '<text x="2" y="16" font-family="{}">{}</text></svg>'
)


def png(svg: str, families: str) -> bytes:
    """Return a picture as PNG; its texts are in the first font of the ``families`` that is there.

    Raises :class:`InputError` where resvg is missing, and where none of the fonts is there.
    """
    made = extra("resvg_py", "report", "a PNG")
    _check_font(families)
    found: bytes = made.svg_to_bytes(svg_string=svg, zoom=ZOOM, background="#fff")
    return bytes(found)


@lru_cache(maxsize=1)
def _check_font(families: str) -> None:
    made = extra("resvg_py", "report", "a PNG")
    blank, letter = (made.svg_to_bytes(svg_string=LETTER.format(families, c)) for c in " x")
    if blank == letter:
        raise InputError(f"a PNG needs one of the fonts {families}; allowed: --format svg")
