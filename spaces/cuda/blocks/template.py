"""A base of the templates of products whose threads copy the tiles themselves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from tilewright.spaces.cuda.blocks.code import BlockCode
from tilewright.spaces.cuda.blocks.finish import prelude, why_no_sum
from tilewright.spaces.cuda.blocks.implicit import Tiled, tiled_product_of, why_no_open_product
from tilewright.spaces.cuda.blocks.sizes import RingSizes
from tilewright.spaces.cuda.blocks.traffic import Blocks, grid_quantities
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.cuda.template import CudaTemplate
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.quantities import widened
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision, Rule
from tilewright.spaces.workloads.workload import Workload


class BlockTemplate(CudaTemplate):
    """A template that names the ``code`` of its kernels, and their ``size`` by decisions."""

    code: ClassVar[type[BlockCode]]
    size: ClassVar[type[RingSizes]]

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        product = tiled_product_of(workload)
        assert not isinstance(product, str)
        self.product = product
        self.sizes = self.size(product)
        self.decisions = tuple(self.choices())
        self.rules = tuple(self.restrictions())

    @classmethod
    def refuses_on(cls, workload: Workload, cuda: CudaTarget) -> str | None:
        """Return why a workload has no such kernel, in words; None if it has one.

        Reasons are no sum of products, or those of :meth:`refuses_product`.
        """
        product = tiled_product_of(workload)
        if isinstance(product, str):
            return product
        return why_no_sum(product) or cls.refuses_product(product, cuda)

    @classmethod
    @abstractmethod
    def refuses_product(cls, product: Tiled, target: CudaTarget) -> str | None:
        """Return why this template cannot compute a product on a GPU; None if it can."""

    @abstractmethod
    def choices(self) -> Sequence[Decision]:
        """Return the decisions."""

    @abstractmethod
    def restrictions(self) -> Sequence[Rule]:
        """Return the rules."""

    @abstractmethod
    def blocks(self, c: Any) -> Blocks:
        """Return what the blocks of schedules do in a step and take of a multiprocessor."""

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Return the quantities of a population; see ``spaces.cuda.blocks.traffic``."""
        wide = widened(columns)
        return grid_quantities(self.product, self.cuda, self.blocks(wide), wide)

    def lower(self, schedule: Schedule) -> Kernel:
        """Return the kernel; its entry is named after the workload and the schedule."""
        code = self.code(self.sizes, schedule.values, self.entry(schedule))
        return code.kernel(prelude(self.product))

    def why_not_open(self, schedule: Schedule, axis: str) -> str | None:
        """Say why an axis cannot be open: only the slowest one of rows can."""
        return why_no_open_product(self.product, axis)

    def lower_open(self, schedule: Schedule, axis: str) -> Kernel:
        """Return the kernel of any number of rows, up to the product's."""
        code = self.code(self.sizes.opened(), schedule.values, f"{self.entry(schedule)}_open")
        return code.kernel(prelude(self.product))
