"""The code of a warpgroup's two products: scores, and sums of weighed values."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.cuda.chained_hopper.fetching.tiles import PANEL_BYTES, SLICE
from tilewright.spaces.cuda.chained_hopper.plan import ChainedPlan
from tilewright.spaces.cuda.chained_hopper.sizes import TERM_BYTES
from tilewright.spaces.cuda.warpgroups import GROUP
from tilewright.spaces.kernels.text import CUDA

_STEPS = PANEL_BYTES // TERM_BYTES
CHUNKS = PANEL_BYTES // 16
"""Pieces of 16 bytes of a row of a panel."""
VALUES_ARE_THERE = "tw::mbarrier_wait(values_full + 8 * stage, phase);"
"""The C statement that waits for the values of the current stage."""


@dataclass(frozen=True)
class Products:
    """The products of a warpgroup, of a kernel that follows ``plan``.

    They are issued here; whoever issues them waits for them.
    """

    plan: ChainedPlan

    def hold_rows(self) -> list[str]:
        """Print how rows are loaded into registers, if they are multiplied from there."""
        if not self.plan.in_registers:
            return []
        load = f"tw::ldmatrix_x4(held[i], region + {piece()});"
        return CUDA.loop("i", self.plan.depth_steps, load, unroll=True, kind="i32")

    def scores(self, stage: str) -> list[str]:
        """Print how the scores of the keys of ``stage`` are issued."""
        plan = self.plan
        inside = f"i % {_STEPS} * {TERM_BYTES}"
        steps, leading = f"i / {_STEPS} * {plan.keys * PANEL_BYTES} + {inside}", 16
        if plan.sizes.lies_along_keys:
            steps, leading = f"i * {plan.sizes.terms * PANEL_BYTES}", plan.sizes.depth * PANEL_BYTES
        keys = f"shared + {plan.keys_at} + {stage} * {plan.key_bytes}"
        first, rows = "held[i]", []
        if not plan.in_registers:
            first = _step("rows", f"i / {_STEPS} * {SLICE * PANEL_BYTES} + {inside}")
            rows = [f"  const u64 rows = {_descriptor('region', 16)};"]
        return [
            "{",
            *rows,
            f"  const u64 keys = {_descriptor(keys, leading)};",
            "  tw::wgmma_fence();",
            "#pragma unroll",
            f"  for (i32 i = 0; i < {plan.depth_steps}; i++)",
            f"    {plan.score_product}(scores, {first}, {_step('keys', steps)}, i > 0);",
            "  tw::wgmma_commit();",
            "}",
        ]

    def sums(self) -> list[str]:
        """Print how the sums of the current stage are issued."""
        plan = self.plan
        values = f"shared + {plan.values_at} + stage * {plan.value_bytes}"
        steps, leading = f"i * {plan.sizes.terms * PANEL_BYTES}", plan.keys * PANEL_BYTES
        if plan.sizes.has_bytes:  # the keys of a tile are one panel at most
            steps, leading = f"i * {TERM_BYTES}", 16
        right = _step("values", steps)
        into, more = ("added", "i > 0") if plan.sizes.has_bytes else ("sums", "i > 0 ? 1 : more")
        return [
            VALUES_ARE_THERE,
            "{",
            f"  const u64 values = {_descriptor(values, leading)};",
            "  tw::wgmma_fence();",
            "#pragma unroll",
            f"  for (i32 i = 0; i < {plan.key_steps}; i++)",
            f"    {plan.sum_product}({into}, weights[i], {right}, {more});",
            "  tw::wgmma_commit();",
            "}",
        ]

    def settle_sums(self) -> list[str]:
        """Print how the sums are settled once their products have ended.

        In float8, the products are those of one tile, and are added to the sums in float32
        (:data:`spaces.numerics.adding.IN_ONE_OF_FLOAT8`).
        """
        if not self.plan.sizes.has_bytes:
            return ["tw::settle(sums);"]
        added = CUDA.loop("e", self.plan.sizes.width // 2, "sums[e] += added[e];", unroll=True)
        return ["tw::settle(added);", *added]

    def without_last(self, tile: str) -> list[str]:
        """Print how the values of the current tile's keys behind the last visible one become zero.

        Visible is a key that some row of the block sees.
        """
        n = self.plan.keys
        return self._without(tile, f"({tile} + 1) * {n} > end_key", "key >= end_key", 1)

    def without_first(self, tile: str) -> list[str]:
        """Print how the values of the current tile's keys before the first visible one become
        zero."""
        return self._without(tile, f"{tile} * {self.plan.keys} < first_key", "key < first_key", 0)

    def _without(self, tile: str, some: str, hidden: str, end: int) -> list[str]:
        """Print how the values of a tile's ``hidden`` keys become zero, where ``some`` are hidden.

        They may be anything, NaN included. Each warpgroup zeroes them all, so that none waits for
        another. One that is behind may write while another's products read: zeros over zeros, for
        the other had written them before, both after the copy that brought the tile. The next copy
        waits for all warpgroups' products.
        """
        plan, n = self.plan, self.plan.keys
        bounded = plan.chained.bounds and plan.spans.ends(n)[end]
        if not bounded or plan.sizes.has_bytes:
            return []
        chunks = plan.boxes["values"].panels * CHUNKS
        values = f"shared + {plan.values_at} + stage * {plan.value_bytes}"
        place = f"i % {chunks} / {CHUNKS} * {n * PANEL_BYTES} + i / {chunks} * {PANEL_BYTES}"
        cleared = [
            f"const i32 key = {tile} * {n} + i / {chunks};",
            f"if ({hidden})",
            f"  tw::store_shared<4>({values} + {place} + i % {CHUNKS} * 16, none);",
        ]
        body = [
            VALUES_ARE_THERE,
            "const u32 none[4] = {};",
            *CUDA.loop("i", n * chunks, cleared, first="thread", step=GROUP, kind="i32"),
            "tw::fence_async();",
            f"tw::sync_named({1 + plan.warpgroups} + group, {GROUP});",
        ]
        return CUDA.when(some, body)

    def pack(self) -> list[str]:
        """Print how weights are packed as the next product takes them.

        It comes after the wait for the last product, which reads them: else ptxas would serialise
        all products.
        """
        plan, count, packed = self.plan, 2, "scores[2 * i], scores[2 * i + 1]"
        if plan.sizes.has_bytes:  # two neighbours of a row, and two of the next eight keys
            each = (f"scores[i / 2 * 8 + i % 2 * 2 + {n}]" for n in (0, 1, 4, 5))
            count, packed = 4, ", ".join(each)
        call = f"tw::pack{count}<{plan.weight_kind}>({packed})"
        return [
            "#pragma unroll",
            f"for (i32 i = 0; i < {plan.key_steps * 4}; i++)",
            f"  weights[i / 4][i % 4] = {call};",
        ]

    def stage_output(self) -> list[str]:
        """Print how the output's pairs are written to where the rows were, to be stored by TMA."""
        whole, rest = divmod(self.plan.sizes.width, 2 * 8)
        four = ", ".join(["packed[4 * i]", *(f"packed[4 * i + {n}]" for n in (1, 2, 3))])
        stores = [f"const u32 four[4] = {{{four}}};", f"tw::stmatrix_x4(region + {piece()}, four);"]
        lines = CUDA.loop("i", whole, stores, unroll=True, kind="i32")
        if rest:
            lines += CUDA.block(
                f"const i32 i = {whole};",
                f"const u32 two[2] = {{packed[{4 * whole}], packed[{4 * whole + 1}]}};",
                f"tw::stmatrix_x2(region + {piece()}, two);",
            )
        return lines


def zeros(count: int) -> list[str]:
    """Print how ``count`` sums are set to zero."""
    return CUDA.loop("e", count, "sums[e] = 0.0f;", unroll=True)


def piece() -> str:
    """Return C text of a lane's address for ldmatrix or stmatrix, relative to a warpgroup's rows.

    It is that of a row of 16 bytes in the ``i``-th 16 columns of the warp's rows, which are
    swizzled.
    """
    chunk = f"((i % {_STEPS} * 2 + lane / 16) ^ (lane % 8))"
    row = f"(warp * 16 + lane % 16) * {PANEL_BYTES}"
    return f"i / {_STEPS} * {SLICE * PANEL_BYTES} + {row} + ({chunk} << 4)"


def _descriptor(at: str, leading: int) -> str:
    return f"tw::wgmma_descriptor<{PANEL_BYTES}>({at}, {leading}, {8 * PANEL_BYTES})"


def _step(descriptor: str, offset: str) -> str:
    """Return C text of a wgmma ``descriptor`` moved by ``offset`` bytes.

    The address is its lowest bits, in units of 16 bytes, and no address of shared memory overflows
    them.
    """
    return f"{descriptor} + (({offset}) >> 4)"
