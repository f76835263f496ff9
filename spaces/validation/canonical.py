"""JSON text by which equal data is known as equal."""

from __future__ import annotations

import json

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def canonical_json(data: object) -> str:
    """JSON text with sorted keys and no spaces: equal data gives equal text."""
    return _ENCODER.encode(data)
