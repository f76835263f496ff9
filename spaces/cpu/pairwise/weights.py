"""The C that turns the scores of a row and a tile of keys into weights, in place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.spaces.cpu.chained.access import Access
from tilewright.spaces.cpu.chained.hiding import mask, shown
from tilewright.spaces.cpu.rows.scopes import VectorScope
from tilewright.spaces.derivation.pairwise.view import Pairwise
from tilewright.spaces.kernels.text import C
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.language.tree import Expression


@dataclass(frozen=True)
class Weights:
    """Writes the weights of row ``r`` of a block for the keys from ``tile`` on."""

    access: Access[Pairwise]
    lanes: int

    def write(self, masked: bool) -> list[str]:
        """Return the lines for a row that sees all keys of the tile, or only some if ``masked``:
        hidden keys have the weight :data:`~spaces.cpu.chained.hiding.HIDDEN`."""
        pairwise = self.access.view
        lines: list[str] = []
        row = VectorScope("g", self._of_row, lines, magnitudes=magnitudes(pairwise.program))
        body = ["const long j = tile + v;"]
        keys = VectorScope("x", self._of_keys(masked), body, row)
        inside = mask(keys, "low", "high", pairwise.conditions) if masked else None
        values = [shown(inside, weight, keys.text(weight)) for weight in pairwise.weights]
        body += [
            f"tw_store_float32(pairs{n} + r * pair_stride + v, {value});"
            for n, value in enumerate(values)
        ]
        return C.block(*lines, *C.loop("v", "count", body, step=self.lanes))

    def _of_row(self, node: Expression) -> str | None:
        for n, scalar in enumerate(self.access.view.scalars):
            if node == scalar.read and not scalar.of_key:
                return f"tw_set(scalar{n}[first_row + r])"
        return self.access.of_row(node)

    def _of_keys(self, masked: bool) -> Callable[[Expression], str | None]:
        pairwise = self.access.view
        bounded = masked or pairwise.key.extent % self.lanes > 0

        def leaf(node: Expression) -> str | None:
            for n, score in enumerate(pairwise.scores):
                if node == score.read:
                    return f"tw_load_float32(pairs{n} + r * pair_stride + v)"
            for n, scalar in enumerate(pairwise.scalars):
                if node == scalar.read and scalar.of_key:
                    return f"tw_load_float32(scalar{n} + v)"
            return self.access.along(node, pairwise.key, "j", bounded)

        return leaf
