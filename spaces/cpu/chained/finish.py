"""The C that computes a row's outputs from its sums and states once all keys have passed."""

from __future__ import annotations

from tilewright.spaces.cpu.chained.access import Access
from tilewright.spaces.cpu.rows.scopes import VectorScope
from tilewright.spaces.cpu.vectors.reducers import ended, identity
from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.derivation.scopes import Leaf
from tilewright.spaces.kernels.text import C
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.language.tree import Expression, Read


def outputs_of_row(chained: Chained, access: Access[Chained], lanes: int) -> list[str]:
    """Return the lines that compute and store all outputs of row ``r``.

    A reduction over no key gives its reducer's identity: the expression of its result is not
    applied.
    """
    lines: list[str] = []
    known = magnitudes(chained.program)
    around = VectorScope("g", access.of_row, lines, magnitudes=known)
    states = VectorScope("s", _scalar_states(chained), lines, around)
    results: dict[str, str] = {}
    for r in chained.scalars:
        name = f"result{len(results)}"
        result = f"{states.text(r.result)}{ended(r.correction, states)}"
        lines.append(f"const vf {name} = seen[r] ? {result} : {states.text(r.state)};")
        results[r.name] = name
    row = VectorScope("h", _results(results), lines, states)
    wide = [output for output in chained.outputs if output.wide]
    for output in chained.outputs:
        if not output.wide:
            lines.append(access.store(output, row.text(output.value), "0", chained.width))
    if wide:
        body: list[str] = []
        raw = VectorScope("w", _sums(chained), body, states)
        sums: dict[str, str] = {}
        for i, weighing in enumerate(chained.weighings):
            value = raw.text(weighing.reduction.result)
            value += ended(weighing.reduction.correction, states)
            body.append(f"const vf y{i} = seen[r] ? {value} : {identity('sum')};")
            sums[weighing.reduction.name] = f"y{i}"
        bounded = chained.width.extent % lanes > 0
        own = _results(sums)
        scope = VectorScope(
            "x", lambda n: own(n) or access.along(n, chained.width, "e", bounded), body, row
        )
        body += [
            access.store(output, scope.text(output.value), "e", chained.width) for output in wide
        ]
        lines += C.loop("e", chained.width.extent, body, step=lanes)
    return lines


def _scalar_states(chained: Chained) -> Leaf:
    places = chained.found_places
    return _results(
        {
            r.name: f"tw_set(seen[r] ? (float)place{k}[r] : 0.0f)"
            if r.name in places
            else f"tw_set(state{k}[r])"
            for k, r in enumerate(chained.scalars)
        }
    )


def _sums(chained: Chained) -> Leaf:
    return _results(
        {
            w.reduction.name: f"tw_load_float32(sums{i} + r * sum_stride + e)"
            for i, w in enumerate(chained.weighings)
        }
    )


def _results(known: dict[str, str]) -> Leaf:
    def leaf(node: Expression) -> str | None:
        return known.get(node.name) if isinstance(node, Read) else None

    return leaf
