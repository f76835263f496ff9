"""The C of ``argmax`` and ``argmin`` over a row's keys: the index of the first of the best keys.

The state of such a reduction is the best value, and ``placeK[r]`` is the index of its key, for the
``K``-th scalar. It is ``NOWHERE`` until the row has seen a key; the value cannot tell, for the
value of the first key may be the reducer's identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tilewright.spaces.cpu.rows.reducing import BEFORE
from tilewright.spaces.cpu.vectors.reducers import EXTREMES, joined_operand
from tilewright.spaces.derivation.scopes import combined

NOWHERE = "0x7fffffff"
"""The greatest index, in C, so that any other one comes before it."""


def begun(k: int, u: int, first: str | None) -> str:
    """Return the line that declares the indices of part ``u``: from ``first`` on, if all lanes have
    a key that counts, else ``NOWHERE``."""
    return f"vi i{k}_{u} = {f'tw_ramp({first})' if first else f'(vi){{0}} + {NOWHERE}'};"


def taken(k: int, u: int, reducer: str, value: str, inside: str | None) -> list[str]:
    """Return the lines that take one more vector of keys into part ``u``: each lane keeps the first
    of the best values. If the mask ``inside`` is given, keys outside of it are skipped."""
    found, better = f"m{k}_{u}", f"b{k}_{u}"
    first = f" | ({inside} & (i{k}_{u} == {NOWHERE}))" if inside else ""
    return [
        f"const vf {found} = {value};",
        f"const vi {better} = {BEFORE[reducer]}({found}, a{k}_{u}){first};",
        f"a{k}_{u} = tw_select({better}, {found}, a{k}_{u});",
        f"i{k}_{u} = tw_pick({better}, tw_ramp(j{u}), i{k}_{u});",
    ]


def met(k: int, reducer: str, parts: Sequence[int]) -> list[str]:
    """Return the lines that join all parts of a tile to the best value before, which has lesser
    keys."""
    kind, name = EXTREMES[reducer], f"c{k}"
    total = combined([f"a{k}_{u}" for u in parts], partial(joined_operand, kind))
    least = [f"tw_where(a{k}_{u}, {name}[0], i{k}_{u})" for u in parts]
    place = combined(least, lambda a, b: f"tw_least({a}, {b})")
    return [
        f"const vf {name} = tw_set(tw_across_{kind}({total}));",
        f"vf t{k} = s{k};",
        *later(k, reducer, name, f"t{k}", place),
    ]


def later(k: int, reducer: str, value: str, best: str, place: str) -> list[str]:
    """Return the lines that join ``value``, of the key ``place``, to the ``best`` of lesser
    keys."""
    return [
        f"const vi b{k} = {BEFORE[reducer]}({value}, {best});",
        f"{best} = tw_select(b{k}, {value}, {best});",
        f"if (b{k}[0] || place{k}[r] == {NOWHERE}) place{k}[r] = {place};",
    ]
