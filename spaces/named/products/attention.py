"""Attention of queries to keys and values, all of a sequence or one more position of it."""

from tilewright.spaces.language import Program, program
from tilewright.spaces.named import _parts as parts

EXAMPLE = "b=2 h=32 i=1024 j=1024 d=128 kv=8 mask=causal dtype=bfloat16"


def attention(
    b: int, h: int, i: int, j: int, d: int, kv: int = 0, mask: str = "none",
    window: int = 0, softcap: float = 0.0, alibi: int = 0, dtype: str = "float32",
) -> Program:  # fmt: skip
    """``softmax(q * k / sqrt(d)) * v`` for ``i`` queries, the last of ``j`` positions.

    ``kv`` heads of keys and values serve ``h`` of queries. ``mask=causal`` hides later positions;
    ``window`` hides all but that many of the latest. ``alibi=1`` adds a slope for each head times
    the distance, ``softcap`` bounds scores by a tanh.
    """
    past, head = parts.past(i, j), f"h // {parts.whole_share('kv', kv or h, 'h', h)}"
    where = parts.attended(i, past, parts.chosen("mask", mask, ("none", "causal")), window)
    score = f"sum[d](q[b, h, i, d] * k[b, {head}, j, d]) * {max(d, 1) ** -0.5!r}"
    if softcap:
        parts.positive(softcap=softcap)
        score = f"{softcap!r} * tanh({score} / {softcap!r})"
    score += f" + slope[h] * (j - i - {past})" if alibi else ""
    output = f"y[b, h, i, e] = sum[j](softmax[j]({score}) * v[b, {head}, j, e])"
    return program(f"{where}{output}", dtype=dtype, b=b, h=h, i=i, j=j, d=d, e=d)
