"""Products with packed codes by fused multiply-adds of single numbers.

Activations are floats in shared memory. Of a tile of codes a lane has two columns and a fourth of
the depth, so that lanes add up their sums before warps do.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cuda.chains.lanes import across_lanes
from tilewright.spaces.cuda.low_bit.code import CodedCode
from tilewright.spaces.cuda.low_bit.decoding import Lines
from tilewright.spaces.cuda.low_bit.sizes import FLOAT
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.low_bit.order import DEPTH, HALVES, STEPS, slots


@dataclass(frozen=True)
class ScalarCode(CodedCode):
    """The kernel whose lanes decode and multiply one number at a time."""

    @property
    def _each(self) -> str:
        return f"[{self._number('warp_tiles')}][{self._rows}][{HALVES}]"

    @property
    def _has_zero(self) -> bool:
        return self.product.zero is not None and not self.decoding.folds_zero

    @property
    def _zeros_above(self) -> float:
        return self.decoding.raised_by if self.decoding.raises_zero else 0.0

    def _chunks(self) -> Lines:
        return [
            f"for (int chunk = first; chunk < last; chunk += {self._depth}) {{",
            f"  const int end = chunk + {self._depth} < last ? chunk + {self._depth} : last;",
            "  tw::sync_block();",
            *indented(self._activations()),
            "  tw::sync_block();",
            *indented(self._stream()),
            "}",
        ]

    def _activations(self) -> Lines:
        """Lay the activations of a chunk of the depth into shared memory, as floats."""
        width = self._depth * DEPTH
        value = self.elements.call("activation", "row", "0", "depth")
        body = [
            f"const i64 row = row0 + n / {width}, depth = (i64)chunk * {DEPTH} + n % {width};",
            "float value = 0.0f;",
            f"if (row < {self.product.row_count} && depth < {self.product.terms}) value = {value};",
            f"tw::store_shared(shared + {FLOAT} * n, value);",
        ]
        return self._sums.strided(self._rows * width, body)

    # -- products ----------------------------------------------------------------------------------

    def _multiply(self) -> Lines:
        """Multiply a tile's depth, part by part; the last tile may have fewer steps."""
        each = STEPS // self.sizes.parts
        there = self.product.terms % DEPTH // 8 or STEPS
        lines = [f"const u32 x = shared + (k - chunk) * {FLOAT * DEPTH} + lane % 4 * {2 * FLOAT};"]
        for part in range(self.sizes.parts):
            steps = range(part * each, (part + 1) * each)
            body = [line for step in steps if step < there for line in self._step(step)]
            more = [line for step in steps if step >= there for line in self._step(step)]
            if not body:
                lines += self._where_whole(self._part(part, more))
            else:
                lines += self._part(part, body + self._where_whole(more))
        return lines

    def _part(self, part: int, body: Lines) -> Lines:
        """Return the lines that multiply a part of the depth, after those of the values that it
        shares."""
        lines = self._shared(part)
        if self._late_parts:
            lines += [f"float t{self._each} = {{}};", *body]
            lines += [
                line
                for tile, half in self._halves()
                for line in self._over_rows(
                    f"s[{tile}][r][{half}] = tw::fused(t[{tile}][r][{half}], scale{tile}_{half}, "
                    f"s[{tile}][r][{half}]);"
                )
            ]
        else:
            lines += body
        return CUDA.block(*lines)

    def _over_rows(self, *body: str) -> Lines:
        return CUDA.loop("r", self._rows, body, unroll=True)

    def _step(self, step: int) -> Lines:
        """Return the lines that multiply 8 of the depth, of which a lane has two terms."""
        pitch, sums = FLOAT * self._depth * DEPTH, "t" if self._late_parts else "s"
        load = f"tw::load_shared<2>(a[r], x + r * {pitch} + {8 * FLOAT * step});"
        lines = [f"float a[{self._rows}][2];", *self._over_rows(load)]
        for tile, half in self._halves():
            slot = slots(self.decoding.bits)[step][half]
            words = sorted({piece.word for piece in slot})
            body = [f"const u32 w{word} = w[f][{tile}][{word}];" for word in words]
            for code in range(2):
                value = self.decoding.value(slot, code)
                if self._has_zero:
                    value = f"{value} - zero{tile}_{half}"
                if self._is_early:
                    value = f"({value}) * scale{tile}_{half}"
                body.append(f"const float c{code} = {value};")
            own = f"{sums}[{tile}][r][{half}]"
            added = (f"{own} = tw::fused(c{code}, a[r][{code}], {own});" for code in range(2))
            lines += CUDA.block(*body, *self._over_rows(*added))
        return CUDA.block(*lines)

    # -- the sums ----------------------------------------------------------------------------------

    def _leave(self) -> Lines:
        """Add up the sums of four lanes, and leave them in shared memory."""
        lines = []
        for tile, half in self._halves():
            place = f"(part * {self._rows} + r) * {self._columns} + {self._column(tile, half)}"
            body = [
                f"float sum = s[{tile}][r][{half}];",
                *across_lanes("sum", "sum"),
                f"if (lane % 4 == 0) tw::store_shared(shared + {FLOAT} * ({place}), sum);",
            ]
            lines += self._over_rows(*body)
        return lines
