"""Two products that share a factor, seen as one whose tiles have columns of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from tilewright.spaces.cuda.blocks.implicit import ImplicitProduct, Tiled, why_not_implicit
from tilewright.spaces.derivation.products.pairs import Pair, pair_in
from tilewright.spaces.language.program import Operand
from tilewright.spaces.language.tree import Expression
from tilewright.spaces.workloads.workload import Workload

T = TypeVar("T")
OTHER = "other"
"""The name under which kernels read the other product's sum, as an operand of the epilogue."""


@dataclass(frozen=True)
class PairedProduct(ImplicitProduct):
    """The output of both products of a ``pair``.

    The view is that of one product; the other's sum is an operand of the epilogue.
    """

    pair: Pair

    @property
    def twin(self) -> Operand:
        """The other product's factor along columns."""
        return self.workload.program.operand[self.pair.twin.operand.name]

    def known(self, total: T, beside: Mapping[str, T]) -> Mapping[Expression, T]:
        """Return what the output is made of: both sums, and the operands' values."""
        return {**super().known(total, beside), self.pair.other: beside[OTHER]}


@dataclass(frozen=True)
class MultipliedPair(PairedProduct):
    """The product that is multiplied: half the columns of a tile are of each product."""

    @property
    def columns(self) -> int:
        """Columns of both products."""
        return 2 * super().columns

    @property
    def finishing(self) -> PairedProduct:
        """The product that is written."""
        return PairedProduct(self.workload, self.view, self.pair, is_open=self.is_open)


def multiplied_pair_of(workload: Workload) -> MultipliedPair | str:
    """Return the pair of products that ``workload`` is; or why tiles cannot compute it, in
    words."""
    if workload.matmul:
        return "it is one product of matrices"
    pair = pair_in(workload.program)
    if isinstance(pair, str):
        return pair
    product = MultipliedPair(workload, pair.product, pair)
    return why_not_implicit(product) or product


def twin_of(product: Tiled) -> Operand | None:
    """Return the other factor along columns, if there are two; else None."""
    return product.twin if isinstance(product, PairedProduct) else None


def finishing(product: Tiled) -> Tiled:
    """Return the product that is written of ``product``."""
    return product.finishing if isinstance(product, MultipliedPair) else product
