"""Ways to spoil a file: byte by byte, or as JSON that is still JSON."""

from __future__ import annotations

import json
import random
from typing import Any

HOSTILE: tuple[Any, ...] = (
    None,
    True,
    False,
    -1,
    0,
    1,
    2**31,
    2**63,
    10**30,
    10**400,
    -(10**400),
    0.5,
    -0.0,
    5e-324,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "0",
    "cpu",
    "ok",
    "final",
    "x" * 70_000,
    "\x1b]0;PWNED\x07\x1b[31m",
    "\x00",
    "\ud800",
    "\u202egnp",
    "\n\r\t",
    "' OR 1=1 --",
    "__import__('os').system('id')",
    [],
    [1e-12],
    [[[]]],
    {},
    {"": ""},
    {"a": {"b": [None]}},
)


def spoiled_json(rng: random.Random, value: Any, times: int = 1) -> Any:
    """``value`` with some of its parts replaced, left out, renamed or doubled."""
    value = json.loads(json.dumps(value))
    for _ in range(times):
        holder, key = _place(rng, value)
        if holder is None:
            return rng.choice(HOSTILE)
        _spoil(rng, holder, key)
    return value


def _place(rng: random.Random, value: Any) -> tuple[Any, Any]:
    """A list or object somewhere inside ``value``, and an index of it."""
    holder, key = None, None
    while isinstance(value, dict | list) and value and (holder is None or rng.random() < 0.7):
        key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
        holder, value = value, value[key]
    return holder, key


def _spoil(rng: random.Random, holder: Any, key: Any) -> None:
    way = rng.randrange(6)
    if way <= 2:
        holder[key] = rng.choice(HOSTILE)
    elif way == 3:
        del holder[key]
    elif way == 4 and isinstance(holder, dict):
        holder[str(rng.choice(HOSTILE))[:100]] = holder.pop(key)
    elif way == 4:
        holder.insert(key, rng.choice(HOSTILE))
    elif isinstance(holder[key], int | float) and not isinstance(holder[key], bool):
        holder[key] = rng.choice([holder[key] * -1, holder[key] * 10**6, holder[key] // 7, 3])
    else:
        holder[key] = [holder[key]] * rng.choice([1, 2, 50])


def as_text(rng: random.Random, value: Any) -> bytes:
    """``value`` as JSON, or nearly; sometimes one that nests without end or says a name twice."""
    text = json.dumps(value, ensure_ascii=rng.random() < 0.8)
    way = rng.randrange(20)
    if way == 0:
        text = "[" * 50_000 + text
    elif way == 1 and text.startswith("{"):
        text = text[:-1] + "," + text[1:]
    return text.encode("utf-8", "surrogatepass")


def spoiled_bytes(rng: random.Random, data: bytes) -> bytes:
    """``data`` cut short, flipped, zeroed, moved or grown somewhere."""
    way = rng.randrange(8)
    at = rng.randrange(len(data) + 1)
    size = rng.choice([1, 2, 8, 64, 300, 4096])
    some = bytes(rng.randrange(256) for _ in range(min(size, 300)))
    if way == 0:
        return data[:at]
    if way == 1:
        return b""
    if way == 2:
        return data[:at] + bytes(size) + data[at + size :]
    if way == 3:
        return data[:at] + some + data[at:]
    if way == 4:
        return data[:at] + data[at + size :]
    if way == 5:
        return data + some
    spoiled = bytearray(data)
    for _ in range(size):
        if spoiled:
            spoiled[rng.randrange(len(spoiled))] ^= 1 << rng.randrange(8)
    return bytes(spoiled)
