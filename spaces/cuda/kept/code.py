"""The CUDA C++ of a reduction along kept axes: outputs of a task in the registers of a thread.

A task is a vector along the fastest kept axis, and some turns of another kept loop, whose windows
overlap and are read once. Threads of a block have neighbouring tasks, or share one: each then
reduces a part of the outermost loop, and parts meet in shared memory, those of several blocks in
the workspace, where the last of these blocks to come finds them. As task mappings:

    blocks (parts, tasks) * threads (parts, tasks);    tasks (kept loops, the last the fastest)

The last task of a loop begins sooner rather than to have fewer turns: outputs that two tasks
compute have the same values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.mapping import spatial
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cuda.abi import index_type, parameters
from tilewright.spaces.cuda.kept.long_sums import LongSums
from tilewright.spaces.cuda.kept.sizes import TICKET, KeptSizes
from tilewright.spaces.cuda.kept.thread import Thread
from tilewright.spaces.cuda.maps.code import HELPERS
from tilewright.spaces.derivation.kept.view import KeptView
from tilewright.spaces.derivation.products.reach import Reach
from tilewright.spaces.kernel import Argument, Call, Kernel, Launch, Source
from tilewright.spaces.language.functions import REDUCERS

FILL = """\
template <int V, class T> TW_INLINE void tw_fill(T (&to)[V], T value) {
#pragma unroll
  for (int i = 0; i < V; i++) to[i] = value;
}
"""


@dataclass(frozen=True)
class KeptCode:
    """The kernel called ``entry`` of a program whose arguments are ``arguments``."""

    sizes: KeptSizes
    arguments: Sequence[Argument]
    entry: str

    def kernel(self, prelude: str) -> Kernel:
        """The kernel as a whole; ``prelude`` defines the functions that are called."""
        shared, blocks = int(self.sizes.shared_bytes), (int(self.sizes.blocks), 1, 1)
        call = Call(
            self.entry,
            tuple(self.arguments),
            int(self.sizes.workspace_bytes),
            int(self.sizes.ticket_bytes),
            (Launch(blocks, (self.threads, 1, 1), shared_bytes=shared),),
        )
        return Kernel(Source("cuda", prelude, self.source), call)

    @property
    def source(self) -> str:
        """The helpers, and the entry."""
        store = "store_stream" if self.sizes.values["stores"] == "stream" else "store_global"
        return HELPERS.replace("STORE", store) + FILL + "\n".join(self._function()) + "\n"

    @property
    def view(self) -> KeptView:
        """What is computed."""
        return self.sizes.view

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return int(self.sizes.values["threads"])

    @property
    def tasks(self) -> int:
        """Tasks in all."""
        return int(self.sizes.tasks)

    @property
    def share(self) -> int:
        """Threads of a block that share a task."""
        return int(self.sizes.values["reduction_threads"])

    @property
    def split(self) -> int:
        """Blocks that share a task."""
        return int(self.sizes.values["splits"])

    @property
    def _outputs(self) -> range:
        return range(int(self.sizes.outputs))

    @cached_property
    def thread(self) -> Thread:
        """What a thread does."""
        names = {a.array.name: f"x{i}" for i, a in enumerate(self.arguments)}
        return Thread(self.sizes, names, self.integer)

    @property
    def integer(self) -> str:
        """C type of the loops' variables, of offsets and of indices that may be beyond borders."""
        reads = self.view.reads.values()
        indices = [access.offset for access in (*reads, *self.view.outputs)]
        indices += [bound.index for access in reads for bound in access.bounds]
        narrow = index_type(argument.array for argument in self.arguments)
        reach = Reach(self.view.program)
        return narrow if reach.are_narrow(indices) else "i64"

    # -- the entry ---------------------------------------------------------------------------

    def _function(self) -> list[str]:
        named = [
            replace(a, array=replace(a.array, name=f"x{i}")) for i, a in enumerate(self.arguments)
        ]
        given = parameters(named, workspace=self.split > 1)
        bounds = f"__launch_bounds__({self.threads})"
        head = f'extern "C" __global__ void {bounds} {self.entry}({given}) {{'
        return [head, *indented(self._reduce()), "}"]

    def _reduce(self) -> list[str]:
        """A part of what each task reduces over, for each thread."""
        blocks = spatial(self.split, int(self.sizes.task_blocks))
        workers = blocks * spatial(self.share, int(self.sizes.block_tasks))
        worker = index("worker", workers.num_workers)
        lines = [f"const int worker = blockIdx.x * {self.threads} + threadIdx.x;"]
        return [*lines, *workers.emit(worker, self._part, integer="int", language="cuda")]

    def _part(self, at: Sequence[Index]) -> list[str]:
        part, own = at
        shared = self.share > 1 or self.split > 1
        return [
            f"const int part = {part.text};",
            *self._at(own.text),
            *self._declared(),
            *self.thread.held(),
            *self._taps(),
            *["const u32 shared = tw::shared_base();"] * shared,
            *self._together(),
            *(self._exchanged() if self.split > 1 else []),
            *self._first(self.thread.outputs()),
        ]

    def _first(self, lines: Sequence[str]) -> list[str]:
        """Lines for the first of the threads that share a task, if there is one."""
        test = "own == task"
        if self.share > 1:
            test += f" && threadIdx.x < {self.sizes.block_tasks}"
        return [f"if ({test}) {{", *indented(lines), "}"]

    # -- a task ------------------------------------------------------------------------------

    def _at(self, own: str) -> list[str]:
        """Where a thread's task is; threads beyond the last have that one, too."""
        lines = [
            f"const int own = {own};",
            f"const int task = own < {self.tasks} ? own : {self.tasks - 1};",
        ]
        counts = [int(count) for count in self.sizes.counts]
        task = index("task", self.tasks)
        tasks = spatial(*counts).emit(task, self._starts, integer="int", language="cuda")
        return [*lines, *tasks]

    def _starts(self, at: Sequence[Index]) -> list[str]:
        lines = []
        for loop, place in zip(self.view.kept, at, strict=True):
            start = place.text
            if loop == self.view.lane:
                start = (place * self.thread.vector).text
            elif loop == self.sizes.across:
                last, turns = loop.extent - self.thread.turns, self.thread.turns
                start = (place * turns).text
                if loop.extent % turns:
                    start = f"{start} < {last} ? {start} : {last}"
            lines.append(f"const {self.integer} {loop.name} = {start};")
        lane, vector = self.view.lane, self.thread.vector
        left = f"{lane.extent} - {lane.name}" if lane.extent % vector else str(vector)
        return [*lines, f"const {self.integer} left = {left};"]

    def _declared(self) -> list[str]:
        count = int(self.sizes.outputs)
        start = f"float s[{count}] = {{{', '.join([self._identity] * count)}}};"
        return [start, *self._long_sums.declared()]

    @cached_property
    def _long_sums(self) -> LongSums:
        return LongSums(self.sizes, self.thread)

    @property
    def _identity(self) -> str:
        identity = REDUCERS[self.view.reducer].identity
        if identity in (float("inf"), float("-inf")):
            return f"{'-' if identity < 0 else ''}tw::bits_float(0x7f800000u)"
        return f"{identity!r}f"

    def _taps(self) -> list[str]:
        """What is reduced over."""
        turn = [*self.thread.terms(), *self._long_sums.turn_ends()]
        return self._long_sums.in_blocks(self._loops(turn))

    def _loops(self, lines: list[str]) -> list[str]:
        """The lines in all loops that are not written out; parts share the outermost."""
        for number, loop in reversed(list(enumerate(self.sizes.rolled))):
            first, step = ("part", self.sizes.parts) if number == 0 else ("0", 1)
            ahead = self.sizes.values["prefetch"] if number == len(self.sizes.rolled) - 1 else 1
            head = f"for ({self.integer} {loop.name} = {first}; {loop.name} < {loop.extent}; "
            lines = [
                f"#pragma unroll {ahead}",
                f"{head}{loop.name} += {step}) {{",
                *indented(lines),
                "}",
            ]
        return lines

    # -- parts -------------------------------------------------------------------------------

    def _together(self) -> list[str]:
        """The parts of threads of a block, in the registers of the first of each task."""
        if self.share == 1:
            return []
        tasks = int(self.sizes.block_tasks)
        slots = f"shared + 4 * ({{}} * {self.threads} + {{}})"
        saved = [
            f"tw::store_shared({slots.format(j, 'threadIdx.x')}, s[{j}]);" for j in self._outputs
        ]
        other = f"threadIdx.x + q * {tasks}"
        merged = self._long_sums.merged(
            self.share, lambda j: f"tw::load_shared<float>({slots.format(j, other)})"
        )
        return [
            *saved,
            *self._long_sums.cleared(self.share),
            "tw::sync_block();",
            f"if (threadIdx.x < {tasks}) for (int q = 1; q < {self.share}; q++) {{",
            *indented(merged),
            "}",
        ]

    def _exchanged(self) -> list[str]:
        """Parts of blocks go to the workspace; the last block of its tasks goes on, with all of
        them, which its threads share as they shared its own."""
        ticket = f"shared + {int(self.sizes.shared_bytes) - TICKET}"
        saved = [
            f"tw::store_global({self._place(f'part / {self.share}', j)}, s[{j}]);"
            for j in self._outputs
        ]
        merged = self._long_sums.merged(
            self._long_sums.others, lambda j: f"tw::load_global({self._place('other', j)})"
        )
        first, step = f"part % {self.share}", self.share
        return [
            *self._first(saved),
            "tw::fence_global();",
            "tw::sync_block();",
            f"u32 *const tickets = (u32 *)workspace + own / {int(self.sizes.block_tasks)};",
            f"if (threadIdx.x == 0) tw::store_shared({ticket}, tw::take_ticket(tickets));",
            "tw::sync_block();",
            f"if (tw::load_shared<u32>({ticket}) != {self.split - 1}) return;",
            "tw::fence_global();",
            *(f"s[{j}] = {self._identity};" for j in self._outputs),
            *self._long_sums.cleared(self._long_sums.others),
            "#pragma unroll 4",
            f"for (int other = {first}; other < {self.split}; other += {step}) {{",
            *indented(merged),
            "}",
            *self._together(),
            "if (threadIdx.x == 0) tw::store_global(tickets, 0u);",
        ]

    def _place(self, part: str, j: int) -> str:
        """C text of where an accumulator of a block's part is."""
        row = f"({part}) * {int(self.sizes.outputs)} + {j}"
        sums = f"(float *)(workspace + {int(self.sizes.ticket_bytes)})"
        return f"{sums} + (({row}) * {self.tasks} + task)"
