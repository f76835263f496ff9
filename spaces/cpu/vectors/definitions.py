"""Functions on vectors as C text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Definition:
    """The C text of one function, and the names of the functions that it calls."""

    text: str
    calls: tuple[str, ...] = ()


def lanewise(signature: str, value: str) -> str:
    """Return a function as a loop over the lanes, which compilers turn into one instruction: gcc as
    a loop, clang once it is unrolled."""
    return f"""\
TW_INLINE vf tw_{signature} {{
  vf r;
  TW_UNROLL for (int i = 0; i < TW_LANES; i++) r[i] = {value};
  return r;
}}"""
