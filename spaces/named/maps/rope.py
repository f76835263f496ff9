"""Rotary embeddings of positions."""

from tilewright.spaces.errors import InputError
from tilewright.spaces.language import Program, program

EXAMPLE = "b=4 t=1024 h=32 d=128"


def rope(b: int, t: int, h: int, d: int, dtype: str = "float32") -> Program:
    """Each head's vector, its halves turned against each other by the angles of its position.

    As in Su et al., RoFormer, 2021, with the halves apart.
    """
    if d % 2:
        raise InputError(f"d={d} is odd, and has no halves; allowed: even numbers")
    half = d // 2
    turned = f"select(d < {half}, -1, 1) * x[b, t, h, (d + {half}) % {d}]"
    text = f"y[b, t, h, d] = x[b, t, h, d] * cosine[t, d] + {turned} * sine[t, d]"
    return program(text, dtype=dtype, b=b, t=t, h=h, d=d)
