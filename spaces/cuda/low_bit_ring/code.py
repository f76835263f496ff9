"""The CUDA C++ of a product with packed codes that stream through rings of shared memory.

    a block a multiprocessor * teams of warps along the depth * warps along the columns * tiles

A block has its share of the columns, and reads each of their codes once. A team's ring holds stages
of codes and activations, which bulk copies bring, or ``cp.async`` where there are none. Codes are
the left operand of ``mma.sync``. Late sums of whole numbers are those of larger numbers, less what
one more product, of a constant, has too much: it is the same for all columns. At the end the sums
of all teams are added up. Zero points and scales that differ along the depth are read a stage
ahead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilewright.spaces.algebra.index import index
from tilewright.spaces.algebra.mapping import spatial
from tilewright.spaces.algebra.mapping_emit import only_task
from tilewright.spaces.cuda.abi import function, parameters
from tilewright.spaces.cuda.low_bit.decoding import Lines
from tilewright.spaces.cuda.low_bit.elements import Elements
from tilewright.spaces.cuda.low_bit.pairs import is_exact
from tilewright.spaces.cuda.low_bit.sizes import COLUMNS, FLOAT
from tilewright.spaces.cuda.low_bit.sums import BlockSums
from tilewright.spaces.cuda.low_bit_ring.ring import Ring
from tilewright.spaces.cuda.low_bit_ring.segments import END_ROW, SegmentWalk
from tilewright.spaces.cuda.low_bit_ring.sizes import RingSizes
from tilewright.spaces.cuda.mma.code import INSTRUCTIONS
from tilewright.spaces.cuda.mma.fragments import FRAGMENT
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.kernel import Argument, Call, Kernel, Launch, Source
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.low_bit.decoding import literal
from tilewright.spaces.low_bit.order import DEPTH, HALVES, ROWS, slots, tile_bytes, word_groups

STEPS = DEPTH // FRAGMENT
"""Steps of ``mma.sync`` along a tile's depth."""


@dataclass(frozen=True)
class RingCode:
    """The kernel called ``entry`` of a product; ``bulk`` says whether the GPU has bulk copies."""

    sizes: RingSizes
    arguments: tuple[Argument, ...]
    entry: str
    bulk: bool

    def kernel(self, prelude: str) -> Kernel:
        """Return the whole kernel; ``prelude`` defines the functions that expressions call."""
        sizes = self.sizes
        maps = self.ring.tensor_maps
        launch = Launch(
            (int(sizes.blocks), 1, 1),
            (int(sizes.threads), 1, 1),
            shared_bytes=int(sizes.shared_bytes),
            tensor_maps=tuple(maps.values()),
        )
        given = parameters(self.elements.named, self._splits > 1, [*maps])
        bounds = f"{sizes.threads}, {sizes.blocks_per_sm}"
        function_lines = function(self.entry, bounds, given, self._body())
        source = "\n".join([*self.elements.functions(), *function_lines]) + "\n"
        workspace, tickets = int(sizes.workspace_bytes), int(sizes.ticket_bytes)
        call = Call(self.entry, self.arguments, workspace, tickets, (launch,))
        return Kernel(Source("cuda", prelude, source), call)

    @cached_property
    def elements(self) -> Elements:
        """The functions of zero points, scales and the output."""
        return Elements(self.sizes.product, self.arguments, self.entry)

    @cached_property
    def ring(self) -> Ring:
        """The way of codes and activations into shared memory."""
        return Ring(self.sizes, self.elements, self.bulk)

    @cached_property
    def sums(self) -> BlockSums:
        """The sums of a block."""
        sizes, product = self.sizes, self.sizes.product
        return BlockSums(
            elements=self.elements,
            rows=int(sizes.rows),
            columns=int(sizes.columns),
            pitch=int(sizes.pitch),
            parts=self._number("warp_depth"),
            splits=self._splits,
            threads=int(sizes.threads),
            inside=f"row < {END_ROW if product.segments else product.row_count} && column < end",
            scale=bool(sizes.late) and not sizes.is_grouped,
            word_at=int(sizes.word_at),
            ticket_bytes=int(sizes.ticket_bytes),
        )

    # -- numbers -----------------------------------------------------------------------------------

    def _number(self, name: str) -> int:
        return int(self.sizes.values[name])

    @property
    def _splits(self) -> int:
        return self._number("splits")

    @property
    def _tiles(self) -> int:
        return self._number("warp_tiles")

    @property
    def _count(self) -> int:
        """Instructions along the rows of a block."""
        return int(self.sizes.rows) // COLUMNS

    @property
    def _parts(self) -> int:
        """Parts of the depth of a stage."""
        return int(self.sizes.depth // self.sizes.part_depth)

    @property
    def _apart(self) -> bool:
        return bool(self.sizes.apart)

    @property
    def _is_early(self) -> bool:
        return self.sizes.product.scale is not None and not self.sizes.late

    @property
    def _raises(self) -> bool:
        """Tell whether sums are those of larger numbers."""
        return self.sizes.raised

    @property
    def _names(self) -> list[str]:
        """The names of what columns of a part have in shared memory."""
        zero = self.sizes.known_zero is None
        return ["zero"] * zero + ["scale"] * (int(self.sizes.shared_values) - zero)

    # -- the block ---------------------------------------------------------------------------------

    def _body(self) -> Lines:
        once = [*self._pass(), *self.sums.finish()]
        again = [*once, *(["tw::fence_async();"] if self.bulk else []), "tw::sync_block();"]
        if walk := self.walk:
            each = walk.each([*self._share(), "const int begin = 0;", *again])
            place = [*self._warp(), "const u32 shared = tw::shared_base();"]
            return [*place, *self._larger(), *self.ring.start(), *walk.start(), *each]
        if int(self.sizes.passes) > 1:
            step = int(self.sizes.block_tiles)
            once = CUDA.loop("begin", "tiles", again, step=step)
        else:
            once = ["const int begin = 0;", *once]
        return [*self._place(), *self._larger(), *self.ring.start(), *once]

    @cached_property
    def walk(self) -> SegmentWalk | None:
        """The walk over tiles of segments of rows, if there are any."""
        segments = self.sizes.segments
        return SegmentWalk(self.sizes, segments, self.elements) if segments else None

    def _larger(self) -> Lines:
        """Declare the larger numbers that codes are made parts of, in registers."""
        pairs = self.sizes.pairs
        if not pairs.raises:
            return []
        numbers = {self._larger_name(at): pairs.larger(at) for at in self._places}
        return [f"const u32 {n} = tw::in_register({value});" for n, value in numbers.items()]

    def _larger_name(self, at: int) -> str:
        return f"larger{at}" if self.sizes.pairs.decoding.sign else "larger"

    @property
    def _places(self) -> list[int]:
        """The bits of the fraction where codes stay."""
        return sorted({self._place_of(step) for step in range(DEPTH // 8)})

    def _place(self) -> Lines:
        """Return C declarations of the place of a thread's work."""
        sizes = self.sizes
        grid = spatial(int(sizes.row_blocks), int(sizes.column_blocks), self._splits)
        row, column, split = only_task(grid, index("block", int(sizes.blocks)))
        return [
            "const int block = blockIdx.x;",
            *self._warp(),
            f"const i64 row0 = {(row * int(sizes.rows)).text};",
            f"const int across = {column.text};",
            *self._share((split * int(sizes.share)).text),
            "const u32 shared = tw::shared_base();",
            f"const u8 *const q = {self.elements.names[sizes.product.codes.name]};",
        ]

    def _warp(self) -> Lines:
        """Return C declarations of the place of a warp in its block."""
        warps = self._number("warp_columns")
        return [
            "const int warp = (int)tw::warp_uniform(threadIdx.x / 32), lane = threadIdx.x % 32;",
            f"const int team = warp / {warps}, own = warp % {warps};",
        ]

    def _share(self, first: str = "0") -> Lines:
        """Return C declarations of a block's columns, those at the place ``across``, and of its
        depth from the stage ``first`` on."""
        sizes = self.sizes
        blocks, run = int(sizes.column_blocks), int(sizes.run)
        teams, share = self._number("warp_depth"), int(sizes.share)
        each, more = divmod(sizes.tiles, blocks)
        ahead = f"first + {share} < {sizes.whole_stages} ? first + {share} : {sizes.whole_stages}"
        return [
            f"const int tile0 = across * {each} + (across < {more} ? across : {more});",
            f"const int tiles = {each} + (across < {more});",
            f"const int first = {first}, last = {ahead};",
            f"const int runs = (last - first) / {run};",
            f"const u32 turns = (runs - team + {teams - 1}) / {teams} * {run};",
            f"const int begun = first + (int)((i64)across * runs / {blocks}) * {run};",
        ]

    def _pass(self) -> Lines:
        """Walk along the depth once, and leave the sums in shared memory."""
        sizes, product = self.sizes, self.sizes.product
        tiles = int(sizes.block_tiles)
        place = [
            "const int tile = tile0 + begin;",
            f"const int there = tiles - begin < {tiles} ? tiles - begin : {tiles};",
            f"const i64 column0 = (i64)tile * {ROWS};",
            f"const i64 limit = column0 + there * {ROWS};",
            f"const i64 end = limit < {product.columns} ? limit : {product.columns};",
            self._declared_sums,
        ]
        body = [
            *self.ring.wait(),
            *self._exchange(),
            *self._multiply(),
            *self.ring.turn(),
        ]
        return [
            *place,
            *self._ahead(),
            *self.ring.fill(),
            *CUDA.loop("n", "turns", body, kind="u32"),
            "tw::sync_block();",
            *self._leave(),
            "tw::sync_block();",
        ]

    @property
    def _declared_sums(self) -> str:
        return f"float s[{self._tiles}][{self._count}][4] = {{}};"

    def _sum(self, number: int) -> str:
        """C text of one of four sums of a tile and eight rows."""
        return f"s[i][r][{number}]"

    def _leave(self) -> Lines:
        """Leave the sums in shared memory: a lane has two rows of the product."""
        body = []
        for half in range(HALVES):
            column = f"(own * {self._tiles} + i) * {ROWS} + {half * ROWS // HALVES} + lane / 4"
            for row in range(2):
                place = self.sums.place(f"r * {COLUMNS} + lane % 4 * 2 + {row}", column, "team")
                body.append(f"tw::store_shared({place}, {self._sum(2 * half + row)});")
        rows = CUDA.loop("r", self._count, body, unroll=True)
        return CUDA.loop("i", self._tiles, rows, unroll=True)

    # -- zero points and scales --------------------------------------------------------------------

    @property
    def _each(self) -> int:
        """Values of each name that a lane reads."""
        return -(-int(self.sizes.value_columns) // WARP)

    def _ahead(self) -> Lines:
        """Declare what lanes read ahead, and read what the first stage needs."""
        if not self._names:
            return []
        return [
            f"const u32 values = shared + {int(self.sizes.values_at)} + "
            f"warp * {FLOAT * int(self.sizes.value_columns) * len(self._names)};",
            *(f"float next_{name}[{self._each}];" for name in self._names),
            *CUDA.when("turns > 0", self._read("0")),
        ]

    def _read(self, turn: str) -> Lines:
        """Read the values of the stage of a turn, each by one lane."""
        sizes, product = self.sizes, self.sizes.product
        columns, wide = int(sizes.value_columns), self._tiles * ROWS
        body = [
            f"const int e = lane + {WARP} * v;",
            f"const int part = e / {wide};",
            f"const i64 column = tw_whole_min(column0 + own * {wide} + e % {wide}, "
            f"{product.columns - 1});",
            f"const i64 depth = tw_whole_min((i64)at * {int(sizes.depth)} + "
            f"part * {int(sizes.part_depth)}, {product.terms - 1});",
            *(
                f"next_{name}[v] = {self.elements.call(name, 'row0', 'column', 'depth')};"
                for name in self._names
            ),
        ]
        if columns % WARP:
            body = [body[0], *CUDA.when(f"e < {columns}", body[1:])]
        return [*self.ring.at(turn), *CUDA.loop("v", self._each, body, unroll=True)]

    def _exchange(self) -> Lines:
        """Give all lanes the values of a run of stages, and read those of the next one."""
        if not self._names:
            return []
        columns, run = int(self.sizes.value_columns), int(self.sizes.run)
        body = [f"const int e = lane + {WARP} * v;"]
        guard = f"if (e < {columns}) " if columns % WARP else ""
        for number, name in enumerate(self._names):
            place = f"values + {FLOAT} * ({number * columns} + e)"
            value = f"next_{name}[v]"
            value = f"-{value}" if name == "zero" else value
            if self._paired(name):
                value = f"tw::pack2<{self.sizes.pairs.c_type}>({value}, {value})"
            body.append(f"{guard}tw::store_shared({place}, {value});")
        lines = [
            *CUDA.loop("v", self._each, body, unroll=True),
            *CUDA.when(f"n + {run} < turns", self._read(f"(n + {run})")),
            "tw::sync_warp();",
        ]
        return lines if run == 1 else CUDA.when(f"n % {run} == 0", lines)

    def _paired(self, name: str) -> bool:
        """Tell whether pairs of codes meet a value, rather than sums."""
        return self._is_early or (name == "zero" and not self._raises)

    def _values(self, part: int, paired: bool) -> Lines:
        """Load the values of the tile ``i`` of a part, that pairs of codes meet or sums do."""
        columns, wide = int(self.sizes.value_columns), self._tiles * ROWS
        kind, lines = "u32" if paired else "float", []
        for number, name in enumerate(self._names):
            if self._paired(name) != paired:
                continue
            for half in range(HALVES):
                place = number * columns + part * wide + half * ROWS // HALVES
                address = f"values + {FLOAT} * ({place} + (j + i) * {ROWS} + lane / 4)"
                lines.append(f"const {kind} {name}{half} = tw::load_shared<{kind}>({address});")
        return lines

    # -- products ----------------------------------------------------------------------------------

    def _multiply(self) -> Lines:
        """Multiply a stage, some tiles of each warp at a time."""
        sizes = self.sizes
        together, bits = self._number("interleave"), sizes.pairs.decoding.bits
        steps = int(sizes.depth) // FRAGMENT
        each = steps // self._parts
        parts = [range(part * each, (part + 1) * each) for part in range(self._parts)]
        body = [f"u32 w[{together}][{bits}];"]
        if self._apart:
            body.append(f"float t[{together}][{self._count}][4];")
        lines = []
        for step in range(0, steps, 2):
            if self.sizes.shares_fragments:
                lines += self.ring.fragments(step // 2)
        for part, own in enumerate(parts):
            lines += self._shared_sums(part, own)
            for step in own:
                if step % 2 == 0 and not self.sizes.shares_fragments:
                    body += self.ring.fragments(step // 2)
                body += self._step(step, part, first=step == own[0])
            if self._apart:
                body += self._over_tiles([*self._values(part, False), *self._correct(part)])
        step = self._number("interleave")
        return CUDA.block(*lines, *CUDA.loop("j", self._tiles, body, step=step, unroll=True))

    def _shared_sums(self, part: int, steps: range) -> Lines:
        """Multiply activations by what is the same for all columns: what larger numbers have too
        much, and one, for zero points that differ."""
        lines = []
        if self._raises:
            for step in steps:
                for half in range(2):
                    if at := self._place_of(2 * step + half):
                        scaled = f"b{step // 2}[r][{step % 2 * 2 + half}]"
                        by = self.sizes.pairs.scaled(scaled, self.sizes.pairs.both(2.0**-at))
                        lines += self._over_rows([f"{scaled} = {by};"])
            lines += self._sum_of(f"less{part}", steps, self._too_much)
        if self._raises and not self._folds_zero:
            lines += self._sum_of(f"all{part}", steps, lambda at: 2.0**at)
        return lines

    def _sum_of(self, name: str, steps: range, factor: Callable[[int], float]) -> Lines:
        """Declare sums of activations times factors by the place of codes."""
        lines, both = [f"float {name}[{self._count}][4] = {{}};"], self.sizes.pairs.both
        for step in steps:
            first, second = (both(factor(self._place_of(2 * step + half))) for half in range(2))
            left = f"const u32 a[4] = {{{first}, {first}, {second}, {second}}};"
            add = self._add(f"{name}[r]", step, f"{name}[r]")
            lines += CUDA.block(left, *self._over_rows(add))
        return lines

    def _place_of(self, step: int) -> int:
        """Return the bit of the fraction where codes of 8 of the depth stay."""
        pairs = self.sizes.pairs
        slot = slots(pairs.decoding.bits)[step % (DEPTH // 8)][0]
        return pairs.late_place(slot) if self._raises else pairs.place(slot)

    def _too_much(self, at: int) -> float:
        zero = self.sizes.known_zero if self._folds_zero else 0.0
        assert zero is not None
        return -(self.sizes.pairs.raised_by(at) + zero * 2.0**at)

    @cached_property
    def _folds_zero(self) -> bool:
        """Tell whether zero points are subtracted of nothing, or together with what larger numbers
        have too much."""
        pairs, zero = self.sizes.pairs, self.sizes.known_zero
        if not self._raises:
            return True
        if zero is None:
            return False
        much = [pairs.raised_by(at) + zero * 2.0**at for at in self._places]
        return is_exact(np.array(much), pairs.kind)

    def _step(self, step: int, part: int, first: bool) -> Lines:
        """Return the lines that multiply 16 of the depth; the first of a tile load words."""
        lines = self._over_tiles(self._words(step // STEPS)) if step % STEPS == 0 else []
        total = "t[i][r]" if self._apart else "s[j + i][r]"
        before = total if not (first and self._apart) else f"less{part}[r]"
        zeros = first and self._apart and not self._raises
        start = ["const float none[4] = {};"] * zeros
        added = self._over_rows(self._add(total, step, "none" if zeros else before))
        return lines + self._over_tiles(["u32 a[4];", *self._left(step, part, "a"), *start, *added])

    def _words(self, tile: int) -> Lines:
        """Load a lane's words of the tile ``i`` at a tile along the depth."""
        bits = self.sizes.pairs.decoding.bits
        first = tile * int(self.sizes.block_tiles)
        place = f"codes + {tile_bytes(bits)} * ({first} + own * {self._tiles} + j + i)"
        return [
            f"tw::load_shared<{count}>(w[i] + {at}, {place} + {128 * at} + lane * {4 * count});"
            for at, count in word_groups(bits)
        ]

    def _left(self, step: int, part: int, to: str) -> Lines:
        """Decode a fragment of the tile ``i``: both halves of its rows, then the next 8 of the
        depth."""
        pairs = self.sizes.pairs
        within = slots(pairs.decoding.bits)
        places = [
            (half, within[(2 * step + deep) % len(within)][half])
            for deep in range(2)
            for half in range(HALVES)
        ]
        words = sorted({piece.word for _, slot in places for piece in slot})
        lines = [f"const u32 w{word} = w[i][{word}];" for word in words]
        lines += self._values(part, True)
        for number, (half, slot) in enumerate(places):
            at = self._place_of(2 * step + number // HALVES)
            if self._raises:
                value = pairs.raised(slot, at, self._larger_name(at))
            else:
                value = pairs.pair(slot, self._larger_name(at))
            if "zero" in self._names and not self._raises:
                value = pairs.fused(value, pairs.both(1.0), f"zero{half}")
            if self._is_early:
                value = pairs.scaled(value, f"scale{half}")
            lines.append(f"{to}[{number}] = {value};")
        return lines

    def _add(self, total: str, step: int, before: str) -> Lines:
        """Add the product of the fragments ``a`` and those of activations."""
        half = f"b{step // 2}[r]"
        pair = f"{half}[{step % 2 * 2}], {half}[{step % 2 * 2 + 1}]"
        return [
            f"const u32 pair[2] = {{{pair}}};",
            f"tw::{INSTRUCTIONS[self.sizes.pairs.kind]}({total}, a, pair, {before});",
        ]

    def _correct(self, part: int) -> Lines:
        """Add sums of a part of the depth to those of all: less their zero points, scaled."""
        body = []
        for number in range(4):
            half = number // 2
            sum, own = f"s[j + i][r][{number}]", f"t[i][r][{number}]"
            if not self._folds_zero:
                zero = self.sizes.known_zero
                value = f"zero{half}" if zero is None else literal(-zero)
                own = f"tw::fused({value}, all{part}[r][{number}], {own})"
            if "scale" in self._names:
                body.append(f"{sum} = tw::fused({own}, scale{half}, {sum});")
            else:
                body.append(f"{sum} += {own};")
        return self._over_rows(body)

    def _over_tiles(self, body: Lines) -> Lines:
        return CUDA.loop("i", self._number("interleave"), body, unroll=True)

    def _over_rows(self, body: Lines) -> Lines:
        return CUDA.loop("r", self._count, body, unroll=True)
