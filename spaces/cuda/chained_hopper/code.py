"""The CUDA C++ of a chain over the columns of a product, on Hopper.

A block is one to four warpgroups that multiply and one that loads. TMA brings rows once, and tiles
of keys, and of the matrix that has a row for each key, into rings of stages. A multiplying
warpgroup has 64 rows: scores of a tile of keys by wgmma, the chain on accumulators, which makes
weights of them, and sums by another wgmma that takes weights from registers. Keys go from the last
to the first. Tiles that no row of a block sees are never visited.

As task mappings: spatial(blocks) * repeat(tiles of rows) * spatial(warpgroups), and for each
repeat(tiles of keys), products of 64 rows and the chain between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from spaces.algebra.integers import ceil_div
from spaces.algebra.mapping_emit import indented
from spaces.cuda.abi import parameters
from spaces.cuda.chained_hopper.chain import Softmax
from spaces.cuda.chained_hopper.keys import FUNCTIONS
from spaces.cuda.chained_hopper.plan import ChainedPlan
from spaces.cuda.chained_hopper.sizes import GROUP, TERMS
from spaces.cuda.chained_hopper.tiles import PANEL, PANEL_BYTES, SLICE
from spaces.cuda.chained_hopper.walk import Walk
from spaces.kernel import Call, Kernel, Launch, Source, arguments
from spaces.workloads.workload import Workload

LAZINESS = {"always": None, "moved": 0.0, "late": 8.0}
"""By how many powers of two a maximum may rise before sums are corrected."""
MINE, THEIRS = "1 + group", "1 + (group + 1) % {}"
"""Named barriers at which a warpgroup waits for its turn to multiply, and gives it on."""


@dataclass(frozen=True)
class ChainedHopperCode:
    """The kernel called ``entry`` that follows ``plan``."""

    workload: Workload
    plan: ChainedPlan
    entry: str

    def kernel(self) -> Kernel:
        """The kernel as a whole."""
        plan = self.plan
        boxes = (plan.rows_box, plan.keys_box, plan.values_box, plan.output_box)
        launch = Launch(
            grid=(plan.blocks, 1, 1),
            block=((plan.warpgroups + 1) * GROUP, 1, 1),
            shared_bytes=plan.shared_bytes,
            tensor_maps=tuple(box.tensor_map for box in boxes),
        )
        given = arguments(self.workload.inputs, self.workload.outputs)
        workspace = plan.workspace_bytes
        call = Call(self.entry, given, workspace, workspace, (launch,))
        return Kernel(Source("cuda", FUNCTIONS, self.source), call)

    @property
    def source(self) -> str:
        """The entry."""
        plan = self.plan
        given = arguments(self.workload.inputs, self.workload.outputs)
        maps = ("rows_map", "keys_map", "values_map", "output_map")
        signature = parameters(given, plan.workspace_bytes > 0, maps)
        threads = (plan.warpgroups + 1) * GROUP
        bounds = f"__launch_bounds__({threads}, {plan.number('residency')})"
        up, down = [
            [f"tw::registers_{way}<{count}>();"]
            for way, count in zip(("up", "down"), plan.registers or (), strict=False)
        ] or ([], [])
        body = [
            "const u32 shared = tw::shared_base();",
            "const i32 group = (i32)tw::warp_uniform(threadIdx.x / 128);",
            *(f"const u32 {n} = shared + {at};" for n, (at, _, _) in plan.barriers.items()),
            *self._start(),
            f"if (group == {plan.warpgroups}) {{",
            *indented(down),
            f"  if (threadIdx.x == {plan.warpgroups * GROUP}) {{",
            *indented(indented(self._loading())),
            "  }",
            "} else {",
            *indented(up),
            *indented(self._multiplying()),
            "}",
        ]
        lines = [
            f'extern "C" __global__ void {bounds} {self.entry}({signature}) {{',
            *indented(body),
            "}",
        ]
        return "\n".join(lines) + "\n"

    def _start(self) -> list[str]:
        inits = [
            f"for (i32 i = 0; i < {count}; i++) tw::mbarrier_init({name} + 8 * i, {arrivals});"
            for name, (_, count, arrivals) in self.plan.barriers.items()
        ]
        maps = ("rows_map", "keys_map", "values_map")
        inits += [f"tw::tma_prefetch(&{name});" for name in maps]
        return [
            f"if (threadIdx.x == {self.plan.warpgroups * GROUP}) {{",
            *indented([*inits, "tw::fence_barrier_init();"]),
            "}",
            "tw::sync_block();",
        ]

    # -- which keys ----------------------------------------------------------------------------

    def _key_tiles(self) -> list[str]:
        """The tiles of keys that some row of the block sees, from ``first`` to before ``end``; one
        at least, so that all rows pass the same way."""
        plan = self.plan
        rows = int(plan.sizes.rows(plan.values))
        last = f"tw_least(row0 + {rows - 1}, {plan.tiles.row_count - 1})"
        count = int(ceil_div(plan.chained.key.extent, plan.keys))
        return [
            "i32 first_key, end_key;",
            *plan.range.of_any("row0", last, "first_key", "end_key"),
            f"const i32 first = tw_least(first_key / {plan.keys}, {count - 1});",
            f"const i32 end = tw_most((end_key + {plan.keys - 1}) / {plan.keys}, first + 1);",
        ]

    # -- loading -------------------------------------------------------------------------------

    def _loading(self) -> list[str]:
        body = [
            *self._key_tiles(),
            *self._load_functions(),
            "load_rows(0);",
            "load_keys(end - 1, stage, phase);",
            *(f"load_rows({group});" for group in range(1, self.plan.warpgroups)),
            "#pragma unroll 1",
            "for (i32 j = end - 1; j >= first; j--) {",
            "  u32 next = stage + 1, after = phase;",
            f"  if (next == {self.plan.stages}) {{ next = 0; after ^= 1; }}",
            *indented(self._load_step()),
            "  stage = next;",
            "  phase = after;",
            "}",
            *self._next_buffer(),
        ]
        return [
            "u32 stage = 0, phase = 1, buffer = 0, rows_phase = 1;",
            *Walk(self.plan).loading(body),
        ]

    def _load_step(self) -> list[str]:
        """In the order in which they are wanted."""
        keys = "if (j > first) load_keys(j - 1, next, after);"
        values = "load_values(j, stage, phase);"
        return [keys, values] if self.plan.values["overlap"] else [values, keys]

    def _load_functions(self) -> list[str]:
        plan = self.plan
        lines = []
        for name, box, at, size in (
            ("keys", plan.keys_box, plan.keys_at, plan.key_bytes),
            ("values", plan.values_box, plan.values_at, plan.value_bytes),
        ):
            to, barrier = f"shared + {at} + stage * {size}", f"{name}_full + 8 * stage"
            lines += [
                f"const auto load_{name} = [&](i32 j, u32 stage, u32 phase) {{",
                f"  tw::mbarrier_wait({name}_empty + 8 * stage, phase);",
                f"  tw::mbarrier_arrive_expect({barrier}, {size});",
                *indented(box.load(to, f"{name}_map", barrier, [f"j * {plan.keys}"], plan.names)),
                "};",
            ]
        rows, barrier = plan.rows_box, "rows_full + 8 * at"
        place = plan.tiles.coordinates(f"(row0 + group * {SLICE})")
        to = f"shared + at * {plan.region_bytes}"
        return [
            *lines,
            "const auto load_rows = [&](i32 group) {",
            f"  const u32 at = buffer * {plan.warpgroups} + group;",
            "  tw::mbarrier_wait(rows_empty + 8 * at, rows_phase);",
            f"  tw::mbarrier_arrive_expect({barrier}, {rows.bytes});",
            *indented(rows.load(to, "rows_map", barrier, place, plan.names)),
            "};",
        ]

    def _next_buffer(self) -> list[str]:
        if self.plan.buffers == 1:
            return ["rows_phase ^= 1;"]
        return [f"if (++buffer == {self.plan.buffers}) {{ buffer = 0; rows_phase ^= 1; }}"]

    # -- multiplying ---------------------------------------------------------------------------

    @cached_property
    def _chain(self) -> Softmax:
        lazily = LAZINESS[str(self.plan.values["rescale"])]
        return Softmax(self.plan.chained, self.plan.keys, lazily)

    def _multiplying(self) -> list[str]:
        plan, sizes = self.plan, self.plan.sizes
        last = plan.warpgroups - 1
        turns = bool(plan.values["ping_pong"])
        registers = [f"u32 held[{sizes.depth // TERMS}][4];"] * plan.in_registers
        return [
            "const i32 thread = threadIdx.x % 128, lane = threadIdx.x % 32, warp = thread / 32;",
            "u32 stage = 0, phase = 0, buffer = 0, rows_phase = 0;",
            *(["i32 stored = -1;"] if plan.buffers > 1 else []),
            *([f"if (group == {last}) tw::arrive_named(1, {2 * GROUP});"] if turns else []),
            f"float scores[{plan.keys // 2}], sums[{sizes.width // 2}];",
            f"u32 weights[{plan.keys // TERMS}][4];",
            *registers,
            *self._chain.states,
            *Walk(plan).multiplying(self._tile()),
            *([f"if (group == 0) tw::sync_named(1, {2 * GROUP});"] if turns else []),
            "if (thread == 0) tw::tma_wait<0>();",
        ]

    def _tile(self) -> list[str]:
        plan = self.plan
        return [
            *self._key_tiles(),
            *self._rows(),
            *self._chain.begin,
            "i32 more = 0;",
            "i32 j = end - 1;",
            *self._first_scores(),
            "#pragma unroll 1",
            "for (j--; j >= first; j--) {",
            *indented(self._overlapped() if plan.values["overlap"] else self._in_turn()),
            "}",
            *self._last_sums(),
            *self._finish(),
        ]

    def _rows(self) -> list[str]:
        """Where this warpgroup's rows are, and which keys all of them see."""
        plan = self.plan
        count = plan.tiles.row_count
        lines = [
            f"const i32 own = row0 + group * {SLICE}, row = own + warp * 16 + lane / 4;",
            f"const u32 at = buffer * {plan.warpgroups} + group;",
            f"const u32 region = shared + at * {plan.region_bytes};",
            "i32 from_key, to_key;",
            *plan.range.of_all(
                "own", f"tw_least(own + {SLICE - 1}, {count - 1})", "from_key", "to_key"
            ),
            "tw::mbarrier_wait(rows_full + 8 * at, rows_phase);",
        ]
        if not plan.in_registers:
            return lines
        return [
            *lines,
            "#pragma unroll",
            f"for (i32 i = 0; i < {plan.sizes.depth // TERMS}; i++) "
            f"tw::ldmatrix_x4(held[i], region + {_piece()});",
        ]

    def _product(self, name: str, lines: Sequence[str]) -> list[str]:
        return ["tw::wgmma_fence();", *lines, "tw::wgmma_commit();"]

    def _scores(self, stage: str) -> list[str]:
        """Start the scores of the keys of a stage."""
        plan = self.plan
        keys = f"shared + {plan.keys_at} + {stage} * {plan.key_bytes}"
        inside = f"i % {PANEL // TERMS} * {2 * TERMS}"
        right = f"keys + i / {PANEL // TERMS} * {plan.keys * PANEL_BYTES} + {inside}"
        left = f"region + i / {PANEL // TERMS} * {SLICE * PANEL_BYTES} + {inside}"
        first = "held[i]" if plan.in_registers else _descriptor(left)
        return [
            "{",
            f"  const u32 keys = {keys};",
            "  tw::wgmma_fence();",
            "#pragma unroll",
            f"  for (i32 i = 0; i < {plan.sizes.depth // TERMS}; i++)",
            f"    {plan.score_product}(scores, {first}, {_descriptor(right)}, i > 0);",
            "  tw::wgmma_commit();",
            "}",
        ]

    def _sums(self) -> list[str]:
        """Start the sums of the stage in turn."""
        plan = self.plan
        values = f"shared + {plan.values_at} + stage * {plan.value_bytes}"
        right = f"values + i * {TERMS * PANEL_BYTES}"
        return [
            "tw::mbarrier_wait(values_full + 8 * stage, phase);",
            "{",
            f"  const u32 values = {values};",
            "  tw::wgmma_fence();",
            "#pragma unroll",
            f"  for (i32 i = 0; i < {plan.keys // TERMS}; i++)",
            f"    {plan.sum_product}(sums, weights[i], "
            f"{_descriptor(right, plan.keys * PANEL_BYTES)}, i > 0 ? 1 : more);",
            "  tw::wgmma_commit();",
            "}",
        ]

    def _weights(self) -> list[str]:
        """The chain over a tile, of which some keys may not count."""
        plan = self.plan
        key = f"j * {plan.keys}"
        bounds = [
            line
            for r in range(2)
            for line in plan.range.of_row(f"(row + {8 * r})", f"low[{r}]", f"high[{r}]")
        ]
        masked = [
            "i32 low[2], high[2];",
            *bounds,
            f"const i32 key = {key} + lane % 4 * 2;",
            "#pragma unroll",
            f"for (i32 i = 0; i < {plan.keys // 2}; i++) {{",
            "  const i32 k = key + i / 4 * 8 + i % 2, r = i / 2 % 2;",
            "  if (k < low[r] || k >= high[r]) scores[i] = -__builtin_huge_valf();",
            "}",
        ]
        return [
            f"if ({key} < from_key || {key} + {plan.keys} > to_key) {{",
            *indented(masked),
            "}",
            *self._chain.weights(),
        ]

    def _pack(self) -> list[str]:
        """Weights as the next product takes them. Not before the wait for the last one, which reads
        them: ptxas would put all products in a row."""
        plan = self.plan
        element = plan.element
        return [
            "#pragma unroll",
            f"for (i32 i = 0; i < {plan.keys // 4}; i++)",
            f"  weights[i / 4][i % 4] = tw::pack2<{element}>(scores[2 * i], scores[2 * i + 1]);",
        ]

    def _turn(self) -> list[str]:
        ping_pong = bool(self.plan.values["ping_pong"])
        return [f"tw::sync_named({MINE}, {2 * GROUP});"] * ping_pong

    def _give(self) -> list[str]:
        theirs = THEIRS.format(self.plan.warpgroups)
        ping_pong = bool(self.plan.values["ping_pong"])
        return [f"tw::arrive_named({theirs}, {2 * GROUP});"] * ping_pong

    def _first_scores(self) -> list[str]:
        apart = not self.plan.values["overlap"]
        return [
            "tw::mbarrier_wait(keys_full + 8 * stage, phase);",
            *(self._turn() if apart else []),
            *self._scores("stage"),
            *(self._give() if apart else []),
            *self._hand_back(),
            "tw::wgmma_wait<0>();",
            "tw::settle(scores);",
            _release("keys", "stage"),
            "{",
            *indented(self._weights()),
            "}",
            *self._pack(),
        ]

    def _hand_back(self) -> list[str]:
        """The rows of the tile before, whose place its output has left by now."""
        if self.plan.buffers == 1:
            return []
        return [
            "if (stored >= 0 && thread == 0) {",
            "  tw::tma_wait_read<0>();",
            "  tw::mbarrier_arrive(rows_empty + 8 * stored);",
            "}",
        ]

    def _overlapped(self) -> list[str]:
        """Scores of the next tile and sums of this one are multiplied at a time; the next tile's
        chain runs beside the sums."""
        return [
            "u32 next = stage + 1, after = phase;",
            f"if (next == {self.plan.stages}) {{ next = 0; after ^= 1; }}",
            "tw::mbarrier_wait(keys_full + 8 * next, after);",
            *self._turn(),
            *self._scores("next"),
            *self._sums(),
            *self._give(),
            "tw::wgmma_wait<1>();",
            "tw::settle(scores);",
            _release("keys", "next"),
            *self._weights(),
            "tw::wgmma_wait<0>();",
            "tw::settle(sums);",
            _release("values", "stage"),
            *self._pack(),
            *self._chain.correct(self.plan.sizes.width // 2),
            "more = 1;",
            "stage = next;",
            "phase = after;",
        ]

    def _in_turn(self) -> list[str]:
        """Sums of this tile, then scores and chain of the next."""
        return [
            *self._turn(),
            *self._sums(),
            "tw::wgmma_wait<0>();",
            "tw::settle(sums);",
            _release("values", "stage"),
            self._next_stage,
            "tw::mbarrier_wait(keys_full + 8 * stage, phase);",
            *self._scores("stage"),
            *self._give(),
            "tw::wgmma_wait<0>();",
            "tw::settle(scores);",
            _release("keys", "stage"),
            *self._weights(),
            *self._pack(),
            *self._chain.correct(self.plan.sizes.width // 2),
            "more = 1;",
        ]

    @property
    def _next_stage(self) -> str:
        return f"if (++stage == {self.plan.stages}) {{ stage = 0; phase ^= 1; }}"

    def _last_sums(self) -> list[str]:
        apart = not self.plan.values["overlap"]
        return [
            *(self._turn() if apart else []),
            *self._sums(),
            *(self._give() if apart else []),
            "tw::wgmma_wait<0>();",
            "tw::settle(sums);",
            _release("values", "stage"),
            self._next_stage,
        ]

    # -- the end of a tile -----------------------------------------------------------------------

    def _finish(self) -> list[str]:
        plan, width = self.plan, self.plan.sizes.width
        seen = ["bool seen[2];", "{", "  i32 low, high;"]
        for r in range(2):
            seen += indented(plan.range.of_row(f"(row + {8 * r})", "low", "high"))
            seen.append(f"  seen[{r}] = low < high;")
        return [
            *seen,
            "}",
            *self._chain.results(width // 2, "seen"),
            *self._stage_output(),
            "tw::fence_async();",
            f"tw::sync_named({1 + plan.warpgroups} + group, {GROUP});",
            "if (thread == 0) {",
            *indented(
                plan.output_box.store(
                    "output_map", "region", plan.tiles.coordinates("own"), plan.names
                )
            ),
            "  tw::tma_commit();",
            *(
                ["  tw::tma_wait_read<0>();", "  tw::mbarrier_arrive(rows_empty + 8 * at);"]
                if plan.buffers == 1
                else []
            ),
            "}",
            *(["stored = at;"] if plan.buffers > 1 else []),
            *self._next_buffer(),
        ]

    def _stage_output(self) -> list[str]:
        """Results to where the rows were, as they are stored from there."""
        plan = self.plan
        whole, rest = divmod(plan.sizes.width, 16)
        element = plan.element
        four = ", ".join(
            f"tw::pack2<{element}>(sums[8 * i + {2 * n}], sums[8 * i + {2 * n + 1}])"
            for n in range(4)
        )
        lines = [
            "#pragma unroll",
            f"for (i32 i = 0; i < {whole}; i++) {{",
            f"  const u32 four[4] = {{{four}}};",
            f"  tw::stmatrix_x4(region + {_piece()}, four);",
            "}",
        ]
        if rest:
            at = 8 * whole
            two = ", ".join(
                f"tw::pack2<{element}>(sums[{at + 2 * n}], sums[{at + 2 * n + 1}])"
                for n in range(2)
            )
            lines += [
                "{",
                f"  const i32 i = {whole};",
                f"  const u32 two[2] = {{{two}}};",
                f"  tw::stmatrix_x2(region + {_piece()}, two);",
                "}",
            ]
        return lines


def _piece() -> str:
    """C text of where a lane's row of 16 bytes is of the ``i``-th 16 columns of a warp's rows."""
    chunk = f"((i % {PANEL // TERMS} * 2 + lane % 32 / 16) ^ (lane % 8))"
    row = f"(warp * 16 + lane % 16) * {PANEL_BYTES}"
    return f"i / {PANEL // TERMS} * {SLICE * PANEL_BYTES} + {row} + ({chunk} << 4)"


def _descriptor(at: str, leading: int = 16) -> str:
    return f"tw::wgmma_descriptor<{PANEL_BYTES}>({at}, {leading}, {8 * PANEL_BYTES})"


def _release(what: str, stage: str) -> str:
    """Each warp reports a stage: waiting for wgmma tells it of its own part only."""
    return f"if (lane == 0) tw::mbarrier_arrive({what}_empty + 8 * {stage});"
