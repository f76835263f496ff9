"""The scores of a chain, seen as a product whose elements are reduced along rows, not written."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.cuda.blocks.implicit import (
    ImplicitProduct,
    PlacedOutput,
    why_not_implicit,
)
from tilewright.spaces.cuda.chained.kinds import HALVES
from tilewright.spaces.derivation.chained.view import Chained, chained_of
from tilewright.spaces.derivation.products.splitting import Part
from tilewright.spaces.derivation.products.view import placed_product_in
from tilewright.spaces.language.program import Output, Program
from tilewright.spaces.workloads.workload import Workload


@dataclass(frozen=True)
class ReducedProduct(ImplicitProduct):
    """The product of all scores of a ``workload``.

    ``chained`` is the program with bare scores, and says what is computed from them.
    """

    chained: Chained

    @cached_property
    def written(self) -> tuple[PlacedOutput, ...]:
        """The scores, as an array that never exists."""
        return (PlacedOutput(self, self.view.output, self.view.finished[0]),)

    @property
    def is_fused(self) -> bool:
        """True: the chain takes registers beside the sums."""
        return True


def reduced_product_of(workload: Workload) -> ReducedProduct | str:
    """Return the scores of the chain that ``workload`` is.

    If its tiles cannot be reduced one by one, return why, in words.
    """
    chained = chained_of(workload.program)
    if isinstance(chained, str):
        return chained
    if reason := _why_not(chained):
        return reason
    scores = _scores(chained)
    view = placed_product_in(scores)
    if isinstance(view, str):
        return view
    if (_wide(view.rows), _wide(view.columns)) != (_wide(chained.rows), _wide((chained.key,))):
        return f"rows and columns of {chained.score.name} are not numbered as its factors are"
    product = ReducedProduct(workload, view, chained.unscaled)
    return why_not_implicit(product) or product


def _why_not(chained: Chained) -> str | None:
    if chained.weighings:
        return f"{len(chained.weighings)} matrices are weighed; this template takes none"
    if chained.bounds or chained.conditions:
        return "rows see some columns only; needs rows that see all"
    if chained.batches > 1:
        return f"{chained.batches} products; allowed: 1"
    for factor in (chained.left, chained.right):
        read = chained.in_place(factor)
        kind = chained.program.operand[read.name].dtype if read else "computed"
        if kind not in HALVES:
            return f"{factor} is {kind}; allowed: {' or '.join(HALVES)}"
    return None


def _wide(parts: tuple[Part, ...]) -> list[tuple[str, int]]:
    return [(part.name, part.extent) for part in parts if part.extent > 1]


def _scores(chained: Chained) -> Program:
    """Return the program of the scores alone."""
    whole, stage = chained.program, chained.program.stage[chained.score.name]
    reads = {read.name for read in stage.body.reads}
    shape = whole.shape(stage.axes)
    return Program(
        extents=tuple((a, n) for a, n in whole.extents if a in {*stage.axes, *stage.over}),
        operands=tuple(o for o in whole.operands if o.name in reads),
        stages=(stage,),
        conditions=(),
        outputs=(Output(stage.name, "float32", shape, tuple(range(len(shape)))),),
    )
