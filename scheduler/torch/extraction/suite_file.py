"""An extraction as a file that ``tilewright tune --suite`` reads."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tilewright.scheduler.suites.writing import member_lines
from tilewright.scheduler.torch.extraction.extraction import Extracted, Extraction

MOST_PLACES = 4
"""Places that a comment names."""


def suite_text(found: Extraction) -> str:
    """Return the suite in TOML, with shares and what is left to torch as comments."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Extraction) -> Iterator[str]:
    yield f"# {found.covered:.1%} of the FLOPs of products, convolutions and attention are in it."
    if found.left:
        yield "# PyTorch computes:"
    for (name, reason), count in found.left.items():
        yield f"#   {count} x {name}: {_plain(reason)}"
    yield ""
    yield f"title = {json.dumps(found.title)}"
    for each in found.found:
        yield from _member(found, each)


def _member(found: Extraction, each: Extracted) -> Iterator[str]:
    yield ""
    for section in each.sections:
        flops, moved = found.shares(each, section)
        of = f" of {section}" if section else ""
        yield f"# {flops:.1%} of the FLOPs, {moved:.1%} of the bytes{of}"
    yield f"# {_places(each)}"
    yield from member_lines(each.member())


def _places(each: Extracted) -> str:
    named = [f"{count} x {place}" for place, count in each.places.most_common(MOST_PLACES)]
    more = ["..."] if len(each.places) > MOST_PLACES else []
    return _plain(", ".join([*named, *more]))


def _plain(text: str) -> str:
    """Text that fits into one comment."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
