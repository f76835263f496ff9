"""Ten operators of attention as their texts, and with what parameters the named operator is each.

Queries are the last ``i`` of ``j`` positions; those of a decode are one. Eight heads of 64 share
two of keys where groups share them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

HEADS, KEY_HEADS, DEPTH, WINDOW = 8, 2, 64, 256
SCORE = "sum[d](q[b,h,i,d] * k[b,HEAD,j,d]) * 0.125"
OUTPUT = "y[b,h,i,e] = sum[j](softmax[j](SCORE) * v[b,HEAD,j,e])"
CAUSAL = "where j <= i"
ALIBI = "SCORE + slope[h] * (j - i - PAST)"
CAPPED = "50 * tanh(SCORE / 50)"


@dataclass(frozen=True)
class Operator:
    """``conditions``, one a line, and the chain of a ``score``; of heads that share keys if
    ``grouped``. ``parameters`` are those of the named operator beside sizes."""

    conditions: tuple[str, ...]
    score: str
    grouped: bool
    parameters: Mapping[str, int | float | str]
    decodes: bool = False

    def text(self, length: int) -> str:
        """Return the program as one writes it, for so many positions."""
        past = length - 1 if self.decodes else 0
        group = HEADS // KEY_HEADS
        written = OUTPUT.replace("SCORE", self.score).replace("SCORE", SCORE)
        written = written.replace("HEAD", f"h // {group}" if self.grouped else "h")
        return "\n".join([*self.conditions, written.replace("PAST", str(past))])

    def sizes(self, length: int) -> dict[str, int]:
        """Return the extents of the axes but ``e``, which is as ``d``."""
        queries = 1 if self.decodes else length
        return {"b": 1, "h": HEADS, "i": queries, "j": length, "d": DEPTH}

    def named(self, length: int) -> dict[str, int | float | str]:
        """Return all parameters of the named operator."""
        kv = {"kv": KEY_HEADS} if self.grouped else {}
        return {**self.sizes(length), **kv, **self.parameters}


_CAUSAL: Mapping[str, int | float | str] = {"mask": "causal"}

OPERATORS: Mapping[str, Operator] = {
    "global": Operator((), "SCORE", False, {}),
    "causal": Operator((CAUSAL,), "SCORE", False, _CAUSAL),
    "ALiBi": Operator((CAUSAL,), ALIBI, False, {**_CAUSAL, "alibi": 1}),
    "GQA": Operator((CAUSAL,), "SCORE", True, _CAUSAL),
    "softcap": Operator((CAUSAL,), CAPPED, True, {**_CAUSAL, "softcap": 50.0}),
    "window": Operator(
        (CAUSAL, f"where i - j < {WINDOW}"), CAPPED, True,
        {**_CAUSAL, "window": WINDOW, "softcap": 50.0},
    ),
    "decode": Operator((), "SCORE", False, _CAUSAL, True),
    "decode ALiBi": Operator((), ALIBI, False, {**_CAUSAL, "alibi": 1}, True),
    "decode GQA": Operator((), "SCORE", True, _CAUSAL, True),
    "decode softcap": Operator((), CAPPED, True, {**_CAUSAL, "softcap": 50.0}, True),
}  # fmt: skip
LENGTHS, DECODE_LENGTHS = (128, 512, 2048), (2048, 8192, 32768)


def lengths_of(operator: Operator) -> tuple[int, ...]:
    """Return the lengths at which an operator is measured."""
    return DECODE_LENGTHS if operator.decodes else LENGTHS
