"""The CUDA C++ of a reduction along kept axes: outputs of a task in the registers of a thread.

A task is a vector along the fastest kept axis, for some turns of another kept loop, whose windows
overlap and are read once. Threads of a block have neighbouring tasks, or share one: each then
reduces a part of the outermost loop. Parts are merged in shared memory, those of several blocks in
the workspace by the last of these blocks to come. As task mappings:

    blocks (parts, tasks) * threads (parts, tasks);    tasks (kept loops, the last the fastest)

The last task of a loop begins sooner, so that it has no fewer turns than others: outputs that two
tasks compute have the same values.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.mapping import spatial
from tilewright.spaces.algebra.mapping_emit import only_task
from tilewright.spaces.cuda import whole_numbers
from tilewright.spaces.cuda.abi import entry, index_type
from tilewright.spaces.cuda.blocks.last_to_come import TICKET, LastToCome
from tilewright.spaces.cuda.kept.long_sums import LongSums
from tilewright.spaces.cuda.kept.sizes import KeptSizes
from tilewright.spaces.cuda.kept.thread import Thread
from tilewright.spaces.cuda.maps.code import HELPERS
from tilewright.spaces.cuda.scalar_code import literal
from tilewright.spaces.derivation.maps.nest import Loop
from tilewright.spaces.derivation.products.reach import Reach
from tilewright.spaces.kernel import Argument, Call, Kernel, Launch, Source
from tilewright.spaces.kernels.body import Body, Value
from tilewright.spaces.language.functions import REDUCERS

FILL = """\
template <int V, class T> TW_INLINE void tw_fill(T (&to)[V], T value) {
#pragma unroll
  for (int i = 0; i < V; i++) to[i] = value;
}
"""


@dataclass(frozen=True)
class KeptCode:
    """The kernel named ``entry`` of a program whose arguments are ``arguments``."""

    sizes: KeptSizes
    arguments: Sequence[Argument]
    entry: str

    def kernel(self, prelude: str) -> Kernel:
        """Return the kernel with its launch; ``prelude`` defines the functions that are called."""
        shared, blocks = self.sizes.shared_bytes, (self.sizes.blocks, 1, 1)
        call = Call(
            self.entry,
            tuple(self.arguments),
            self.sizes.workspace_bytes,
            self.sizes.ticket_bytes,
            (Launch(blocks, (self.sizes.threads, 1, 1), shared_bytes=shared),),
        )
        return Kernel(Source("cuda", prelude, self.source), call)

    @property
    def source(self) -> str:
        """The CUDA C++ of the helpers and the entry."""
        store = "store_stream" if self.sizes.values["stores"] == "stream" else "store_global"
        helpers = HELPERS.replace("STORE", store) + whole_numbers.HELPERS + FILL
        return helpers + entry(
            self.entry,
            self.sizes.threads,
            self.arguments,
            self._reduce,
            workspace=self.sizes.split > 1,
        )

    @property
    def _outputs(self) -> range:
        return range(self.sizes.outputs)

    @cached_property
    def thread(self) -> Thread:
        """The code of a thread."""
        names = {a.array.name: f"x{i}" for i, a in enumerate(self.arguments)}
        return Thread(self.sizes, names)

    @property
    def integer(self) -> str:
        """The C type of the loops' variables, of offsets and of indices that may be beyond
        borders."""
        reads = self.sizes.view.reads.values()
        indices = [access.offset for access in (*reads, *self.sizes.view.outputs)]
        indices += [bound.index for access in reads for bound in access.bounds]
        narrow = index_type(argument.array for argument in self.arguments)
        reach = Reach(self.sizes.view.program)
        return narrow if reach.are_narrow(indices) else "i64"

    # -- the entry ---------------------------------------------------------------------------

    def _reduce(self, body: Body) -> None:
        """Write the entry: each thread reduces a part of what its task reduces over."""
        blocks = spatial(self.sizes.split, self.sizes.task_blocks)
        workers = blocks * spatial(self.sizes.share, self.sizes.block_tasks)
        body.let("const int", "worker", f"blockIdx.x * {self.sizes.threads} + threadIdx.x")
        part, own = only_task(workers, index("worker", workers.num_workers))
        if self.sizes.parts > 1:
            body.let("const int", "part", part)
        self._place(body, own)
        self._declare(body)
        self.thread.hold(body)
        with self._long_sums.in_blocks(body):
            self._taps(body, list(self.sizes.rolled))
        if self.sizes.share > 1 or self.sizes.split > 1:
            body.let("const u32", "shared", "tw::shared_base()")
        self._merge_threads(body)
        if self.sizes.split > 1:
            self._merge_blocks(body)
        with self._first(body):
            self.thread.outputs(body)

    def _first(self, body: Body) -> AbstractContextManager[None]:
        """Leave what is written inside to the first of the threads that share a task."""
        test = "own == task"
        if self.sizes.share > 1:
            test += f" && threadIdx.x < {self.sizes.block_tasks}"
        return body.when(test)

    # -- a task ------------------------------------------------------------------------------

    def _place(self, body: Body, own: Index) -> None:
        """Write where a thread's task is; threads beyond the last task do that one, too."""
        body.let("const int", "own", own)
        body.let("const int", "task", f"own < {self.sizes.tasks} ? own : {self.sizes.tasks - 1}")
        tasks = spatial(*self.sizes.counts)
        places = only_task(tasks, index("task", self.sizes.tasks))
        for loop, place in zip(self.sizes.view.kept, places, strict=True):
            body.let(f"const {self.integer}", loop.name, self._start(loop, place))
        lane, vector = self.sizes.view.lane, self.thread.vector
        left = f"{lane.extent} - {lane.name}" if lane.extent % vector else vector
        body.let(f"const {self.integer}", "left", left)

    def _start(self, loop: Loop, place: Index) -> Value:
        """Return the first turn of a loop in a task; the last task begins sooner, if it must."""
        if loop == self.sizes.view.lane:
            return place * self.thread.vector
        if loop != self.sizes.across:
            return place
        last, turns = loop.extent - self.thread.turns, self.thread.turns
        start = place * turns
        return f"{start.text} < {last} ? {start.text} : {last}" if loop.extent % turns else start

    def _declare(self, body: Body) -> None:
        count = self.sizes.outputs
        body.let("float", "s", f"{{{', '.join([self._identity] * count)}}}", count=count)
        self._long_sums.declare(body)

    @cached_property
    def _long_sums(self) -> LongSums:
        return LongSums(self.sizes, self.thread)

    @property
    def _identity(self) -> str:
        return literal(REDUCERS[self.sizes.view.reducer].identity)

    def _taps(self, body: Body, rolled: Sequence[Loop]) -> None:
        """Write the loops that are not unrolled, around the terms; parts share the outermost."""
        if not rolled:
            self.thread.terms(body)
            self._long_sums.end_turn(body)
            return
        loop, *inner = rolled
        parts = self.sizes.parts if loop == self.sizes.rolled[0] else 1
        with body.loop(
            self.integer,
            loop.name,
            loop.extent,
            first="part" if parts > 1 else 0,
            step=parts,
            unroll=1 if inner else self.sizes.values["prefetch"],
        ):
            self._taps(body, inner)

    # -- parts -------------------------------------------------------------------------------

    def _merge_threads(self, body: Body) -> None:
        """Write how parts of threads of a block merge in registers of the first of each task."""
        if self.sizes.share == 1:
            return
        tasks = self.sizes.block_tasks
        slots = f"shared + 4 * ({{}} * {self.sizes.threads} + {{}})"
        for j in self._outputs:
            body.call("tw::store_shared", slots.format(j, "threadIdx.x"), f"s[{j}]")
        self._long_sums.clear(body, self.sizes.share)
        body.call("tw::sync_block")
        with (
            body.when(f"threadIdx.x < {tasks}", brief=True),
            body.loop("int", "q", self.sizes.share, first=1),
        ):
            other = f"threadIdx.x + q * {tasks}"
            self._long_sums.merge(
                body,
                self.sizes.share,
                lambda j: f"tw::load_shared<float>({slots.format(j, other)})",
            )

    def _merge_blocks(self, body: Body) -> None:
        """Write how blocks leave parts in the workspace, and the last one merges all.

        Its threads share them as they shared its own part.
        """
        part = index("part", self.sizes.parts)
        with self._first(body):
            for j in self._outputs:
                body.call("tw::store_global", self._left(part // self.sizes.share, j), f"s[{j}]")
        number = f"own / {self.sizes.block_tasks}"
        ticket = body.let("u32 *const", "tickets", f"(u32 *)workspace + {number}")
        last = LastToCome(ticket, f"shared + {self.sizes.shared_bytes - TICKET}")
        last.wait(body, self.sizes.split)
        for j in self._outputs:
            body.assign(f"s[{j}]", self._identity)
        self._long_sums.clear(body, self._long_sums.others)
        first = part % self.sizes.share
        with body.loop(
            "int", "other", self.sizes.split, first=first, step=self.sizes.share, unroll=4
        ) as other:
            self._long_sums.merge(
                body,
                self._long_sums.others,
                lambda j: f"tw::load_global({self._left(other, j)})",
            )
        self._merge_threads(body)
        last.reset(body)

    def _left(self, part: Index, j: int) -> str:
        """Return C text of the address of an accumulator of a block's part."""
        row = index((part * self.sizes.outputs + j).text)
        place = row * self.sizes.tasks + index("task", self.sizes.tasks)
        return f"(float *)(workspace + {self.sizes.ticket_bytes}) + {place}"
