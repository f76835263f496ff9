"""What holds for every CUDA template whose threads load tiles themselves, as inheritable tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pytest

from tilewright.spaces.cuda.blocks.code import BlockCode
from tilewright.spaces.cuda.blocks.sizes import ALIGNMENT, BlockSizes
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.testing.template import TemplateContract, silent_rules
from tilewright.spaces.workloads.product import orient

ORDERS = ("row", "col")


class BlockTemplateContract(TemplateContract):
    """Subclasses name the template, its code and sizes, and dtypes it serves."""

    code: ClassVar[type[BlockCode]]
    sizes: ClassVar[type[BlockSizes]]
    dtypes: ClassVar[Sequence[str]]
    shapes: ClassVar[Sequence[tuple[int, int, int]]] = (
        (4096, 4096, 4096),
        (2039, 2039, 2039),
        (1, 4096, 512),
        (300, 1, 77),
        (5, 3, 1),
    )
    large: ClassVar[tuple[int, int, int]] = (4096, 4096, 4096)

    def served(self):
        return [
            (
                workload(
                    "matmul",
                    m=m,
                    n=n,
                    k=k,
                    dtype=self.dtypes[i % len(self.dtypes)],
                    **dict(zip("abc", (ORDERS[i >> b & 1] for b in range(3)), strict=True)),
                ),
                cuda_target(("sm_80", "sm_90a")[i % 2]),
            )
            for i, (m, n, k) in enumerate([*self.shapes] * 2)
        ]

    def refused(self):
        return [(workload("softmax", r=4, c=8), cuda_target("sm_80"))]

    def test_every_shape_has_schedules(self):
        generator = np.random.default_rng(1)
        for space in self.spaces():
            assert len(space.sample(generator, 64)) >= 60, space.workload

    def test_sizes_that_rules_compute_are_those_of_the_code(self):
        generator = np.random.default_rng(2)
        for space in self.spaces():
            product = orient(space.workload.matmul)
            sizes = self.sizes(product)
            for row in space.sample(generator, 12):
                values = space.schedule(row).values
                code = self.code(sizes, values, "tw_test")
                assert sizes.block(values) == code.block
                assert sizes.threads(values) == code.threads
                assert sizes.shared_bytes(values) == code.shared_bytes
                self.check_copies(code, sizes, product, values)

    def check_copies(self, code, sizes, product, values):
        """What tiles take in shared memory and pass through registers."""
        left, stage = sizes.left_bytes(values), sizes.stage_bytes(values)
        assert 0 <= left - code.left.stage_bytes < ALIGNMENT
        assert 0 <= stage - left - code.right.stage_bytes < ALIGNMENT
        for copy, operand, width in (
            (code.left, product.left, code.block[0]),
            (code.right, product.right, code.block[1]),
        ):
            assert sizes.held(operand, width, values) == copy.registers

    def test_quantities_are_no_less_than_the_workload(self):
        generator = np.random.default_rng(3)
        for space in self.spaces():
            population = space.sample(generator, 200)
            quantities = space.quantities(population)
            work = space.workload
            assert (quantities["flops"] >= work.flops).all()
            assert (quantities["main_bytes"] >= work.least_bytes).all()
            assert (quantities["near_bytes"] >= sum(o.bytes for o in work.matmul.factors)).all()
            assert (quantities["worker_fraction"] <= 1).all()
            assert (quantities["imbalance"] >= 1).all()
            assert (quantities["near_fraction"] <= 1).all()

    def test_kernels_keep_to_the_hardware(self):
        generator = np.random.default_rng(4)
        for space in self.spaces():
            target = space.target
            for row in space.sample(generator, 4):
                kernel = space.lower(space.schedule(row))
                assert kernel.call.launches[0].shared_bytes <= target.shared_per_block
                assert kernel.call.launches[0].block[0] <= target.threads_per_block
                assert "#include" not in kernel.source.text

    def test_every_rule_refuses_something_and_says_why(self):
        """On schedules made of values at random, among products of several shapes."""
        assert not silent_rules(self.spaces(), 100)

    @pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
    def test_a_known_good_schedule_is_in_the_space(self, target):
        for dtype, values in self.known_good():
            m, n, k = self.large
            work = workload("matmul", m=m, n=n, k=k, dtype=dtype)
            space = self.space(work, cuda_target(target))
            schedule = Schedule(self.template.name, tuple(values.items()))
            assert space.why_not(schedule) is None, space.why_not(schedule)

    def known_good(self) -> list[tuple[str, dict[str, int | str]]]:
        """Decisions of schedules that must be allowed, with their dtype."""
        raise NotImplementedError
