"""The C of places: which key of a row is its ``argmax`` or ``argmin``, the first of equal ones.

The state of such a reduction is what is there, and ``placeK[r]`` for the ``K``-th of all scalars:
``NOWHERE`` until a key was seen, whatever its score, for even that may be what nothing gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tilewright.spaces.cpu.rows.reducing import BEFORE
from tilewright.spaces.cpu.vectors.reducers import EXTREMES, joined_operand
from tilewright.spaces.derivation.scopes import combined

NOWHERE = "0x7fffffff"
"""As C has it: the greatest place, so that any other one comes before it."""


def begun(k: int, u: int, first: str | None) -> str:
    """The line that declares the places of part ``u``: those of its ``first`` keys, if all lanes
    have one that counts."""
    return f"vi i{k}_{u} = {f'tw_ramp({first})' if first else f'(vi){{0}} + {NOWHERE}'};"


def taken(k: int, u: int, reducer: str, value: str, inside: str | None) -> list[str]:
    """The lines that take one more vector of keys into part ``u``: the best of each lane, or its
    first, of those that are ``inside``; of all if that is None."""
    found, better = f"m{k}_{u}", f"b{k}_{u}"
    first = f" | ({inside} & (i{k}_{u} == {NOWHERE}))" if inside else ""
    return [
        f"const vf {found} = {value};",
        f"const vi {better} = {BEFORE[reducer]}({found}, a{k}_{u}){first};",
        f"a{k}_{u} = tw_select({better}, {found}, a{k}_{u});",
        f"i{k}_{u} = tw_pick({better}, tw_ramp(j{u}), i{k}_{u});",
    ]


def met(k: int, reducer: str, parts: Sequence[int]) -> list[str]:
    """The lines that join all parts of a tile and what was found before, at lesser keys."""
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
    """The lines that join ``value``, of the key ``place``, to the ``best`` of lesser keys."""
    return [
        f"const vi b{k} = {BEFORE[reducer]}({value}, {best});",
        f"{best} = tw_select(b{k}, {value}, {best});",
        f"if (b{k}[0] || place{k}[r] == {NOWHERE}) place{k}[r] = {place};",
    ]
