"""Rows of a table by their indices."""

from tilewright.spaces.language import Program, program
from tilewright.spaces.named._parts import positive

EXAMPLE = "t=4096 d=1024 words=32000"


def embedding(t: int, d: int, words: int, dtype: str = "float32") -> Program:
    """``y[t, d] = table[token[t], d]``."""
    positive(words=words)
    text = f"token: int32[t](index < {words}); y[t, d] = table[token[t], d]"
    return program(text, dtype=dtype, t=t, d=d)
