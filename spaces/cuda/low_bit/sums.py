"""The sums of a block of a product with packed codes: of its warps, of blocks that share its
columns, and what becomes of them."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cuda.blocks.last_to_come import LastToCome
from tilewright.spaces.cuda.low_bit.decoding import Lines
from tilewright.spaces.cuda.low_bit.elements import Elements
from tilewright.spaces.kernels.text import CUDA

FLOAT = 4


@dataclass(frozen=True)
class BlockSums:
    """Sums that ``parts`` warps left in shared memory: ``rows`` of ``columns`` each, rows ``pitch``
    apart.

    The block adds them up, or the last of ``splits`` blocks that share them; then they are
    multiplied by a ``scale``, if it is that of a column, and written where the C test ``inside``
    holds for ``row`` and ``column``. A ticket lies at ``word_at`` of shared memory, and
    ``ticket_bytes`` of tickets begin the workspace.
    """

    elements: Elements
    rows: int
    columns: int
    pitch: int
    parts: int
    splits: int
    threads: int
    inside: str
    scale: bool
    word_at: int = 0
    ticket_bytes: int = 0

    def place(self, row: str, column: str, part: str) -> str:
        """C expression: the address of a sum of a part, as its warp leaves it."""
        return f"shared + {FLOAT} * (({part} * {self.rows} + {row}) * {self.pitch} + {column})"

    def finish(self) -> Lines:
        """Return the lines that add up and write."""
        return self._finish_alone() if self.splits == 1 else self._finish_last()

    @property
    def _count(self) -> int:
        return self.rows * self.columns

    def strided(self, count: int, body: Lines) -> Lines:
        """C loop in which the threads of a block take ``count`` elements in turns."""
        return CUDA.loop("n", count, body, first="threadIdx.x", step=self.threads)

    def _total(self) -> Lines:
        """Return the lines that add up the sum ``n`` of all warps."""
        columns, pitch = self.columns, self.pitch
        n = "n" if pitch == columns else f"n / {columns} * {pitch} + n % {columns}"
        place = f"shared + {FLOAT} * (w * {self.rows * pitch} + {n})"
        return [
            "float total = 0.0f;",
            "#pragma unroll",
            f"for (int w = 0; w < {self.parts}; w++)",
            f"  total += tw::load_shared<float>({place});",
        ]

    def _finish_alone(self) -> Lines:
        return self.strided(self._count, [*self._total(), *self._write()])

    def _finish_last(self) -> Lines:
        """Leave sums in the workspace; the last block to come adds up those of all."""
        splits, sums = self.splits, self._count
        last = LastToCome("ticket", f"shared + {self.word_at}")
        others = [
            "float total = 0.0f;",
            f"for (int other = 0; other < {splits}; other++)",
            f"  total += tw::load_global(parts + other * {sums} + n);",
        ]
        store = f"tw::store_global(parts + block % {splits} * {sums} + n, total);"
        return [
            f"const int place = block / {splits};",
            "u32 *const ticket = (u32 *)workspace + place;",
            f"float *const parts = (float *)(workspace + {self.ticket_bytes}) + "
            f"(i64)place * {splits * sums};",
            *self.strided(sums, [*self._total(), store]),
            *CUDA.written(lambda body: last.wait(body, splits)),
            *self.strided(sums, [*others, *self._write()]),
            *CUDA.written(last.reset),
        ]

    def _write(self) -> Lines:
        """Write what becomes of the sum ``n``."""
        columns, total = self.columns, "total"
        if self.scale:
            total += f" * {self.elements.call('scale', 'row', 'column', '0')}"
        return [
            f"const i64 row = row0 + n / {columns}, column = column0 + n % {columns};",
            f"if ({self.inside})",
            *indented([f"{self.elements.call('write', 'row', 'column', total)};"]),
        ]
