"""The chain on accumulators: scores of 64 rows and a tile of keys become weights in place.

A thread has rows ``lane / 4`` and ``lane / 4 + 8`` of its warp's 16, and of each columns
``2 * (lane % 4)`` and the next, of every eight. States are of both rows; four lanes share a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import e, log2

from spaces.algebra.mapping_emit import indented
from spaces.derivation.chained.view import Chained
from spaces.derivation.chains.chain_reduction import Scaling
from spaces.language.tree import Binary, Call, Expression, Number

NEVER = 1e30
"""Below any score that counts: what an extreme starts from, finite so that differences are."""


@dataclass(frozen=True)
class Softmax:
    """``max(score * scale)``, ``sum(exp(score * scale - max))``, and weights that are the same
    exponentials. ``keys`` are those of a tile, ``lazily`` by how much a maximum may rise (in
    powers of two) before sums are corrected; None if they are always."""

    chained: Chained
    keys: int
    lazily: float | None

    @staticmethod
    def scale_of(chained: Chained) -> float | None:
        """The positive scale, if the chain is of this form."""
        if [r.reducer for r in chained.scalars] != ["max", "sum"] or len(chained.weighings) != 1:
            return None
        top, total = chained.scalars
        scale = _factor(top.element, chained.score)
        weight = Call("exp", (Binary("-", top.element, top.state),))
        same = total.element == weight == chained.weighings[0].weight
        alike = isinstance(total.correction, Scaling) and total.correction.function == "exp"
        return scale if scale and scale > 0 and same and alike else None

    @cached_property
    def _scale(self) -> str:
        scale = self.scale_of(self.chained)
        assert scale is not None
        return f"{scale * log2(e)!r}f"

    @property
    def states(self) -> list[str]:
        """Declarations."""
        return ["float top[2], total[2], factor[2];"]

    @property
    def begin(self) -> list[str]:
        """States of no keys."""
        lines = [f"top[r] = -{NEVER!r}f; total[r] = 0.f; factor[r] = 1.f;"]
        return ["#pragma unroll", "for (i32 r = 0; r < 2; r++) {", *indented(lines), "}"]

    def weights(self) -> list[str]:
        """``scores`` to weights, states to new ones; sets ``moved``, and ``factor`` if so."""
        count, c = self.keys // 2, self._scale
        moved = "true" if self.lazily is None else f"(best[r] - top[r]) * {c} > {self.lazily!r}f"
        update = [
            f"factor[r] = tw::exp2_approx((top[r] - best[r]) * {c});",
            "total[r] *= factor[r];",
            "top[r] = best[r];",
        ]
        update = ["#pragma unroll", "for (i32 r = 0; r < 2; r++) {", *indented(update), "}"]
        return [
            "float best[2], other[2], base[2], part[2] = {0.f, 0.f};",
            "#pragma unroll",
            "for (i32 r = 0; r < 2; r++) {",
            "  best[r] = tw::max_nan(top[r], scores[2 * r]);",
            "  other[r] = scores[2 * r + 1];",
            "}",
            "#pragma unroll",
            f"for (i32 i = 4; i < {count}; i += 2) {{",
            "  best[i / 2 % 2] = tw::max_nan(best[i / 2 % 2], scores[i]);",
            "  other[i / 2 % 2] = tw::max_nan(other[i / 2 % 2], scores[i + 1]);",
            "}",
            "#pragma unroll",
            "for (i32 r = 0; r < 2; r++) {",
            "  best[r] = tw::max_nan(best[r], other[r]);",
            "  best[r] = tw::max_nan(best[r], tw::shuffle_xor(best[r], 1));",
            "  best[r] = tw::max_nan(best[r], tw::shuffle_xor(best[r], 2));",
            "}",
            *self._moved(moved),
            *(update if self.lazily is None else ["if (moved) {", *indented(update), "}"]),
            "#pragma unroll",
            f"for (i32 r = 0; r < 2; r++) base[r] = top[r] * {c};",
            "#pragma unroll",
            f"for (i32 i = 0; i < {count}; i++) {{",
            f"  scores[i] = tw::exp2_approx(scores[i] * {c} - base[i / 2 % 2]);",
            "  if (i % 2) part[i / 2 % 2] += scores[i]; else total[i / 2 % 2] += scores[i];",
            "}",
            "total[0] += part[0];",
            "total[1] += part[1];",
        ]

    def _moved(self, moved: str) -> list[str]:
        if self.lazily is None:
            return []
        some = " || ".join(f"({moved.replace('[r]', f'[{r}]')})" for r in range(2))
        return [f"const bool moved = tw::any_lane({some});"]

    def correct(self, count: int) -> list[str]:
        """``sums``, corrected to the new states."""
        head = "" if self.lazily is None else "if (moved) "
        return [
            f"{head}{{",
            "#pragma unroll",
            f"  for (i32 i = 0; i < {count}; i++) sums[i] *= factor[i / 2 % 2];",
            "}",
        ]

    def results(self, count: int, seen: str) -> list[str]:
        """``sums`` to results; zero for a row that has no key. ``seen`` is a C array."""
        return [
            "#pragma unroll",
            "for (i32 r = 0; r < 2; r++) {",
            "  total[r] += tw::shuffle_xor(total[r], 1);",
            "  total[r] += tw::shuffle_xor(total[r], 2);",
            f"  factor[r] = {seen}[r] ? 1.f / total[r] : 0.f;",
            "}",
            "#pragma unroll",
            f"for (i32 i = 0; i < {count}; i++) sums[i] *= factor[i / 2 % 2];",
        ]


def _factor(element: Expression, score: Expression) -> float | None:
    """By what number the score is multiplied."""
    match element:
        case Binary("*", left, Number(value)) | Binary("*", Number(value), left):
            inner = _factor(left, score)
            return None if inner is None else inner * value
    return 1.0 if element == score else None
