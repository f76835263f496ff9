"""The CUDA C++ of a reduction along kept axes: outputs of a task in the registers of a thread.

A task is a vector along the fastest kept axis, and some turns of another kept loop, whose windows
overlap and are read once. Threads of a block have neighbouring tasks, or share one: each then
reduces a part of the outermost loop, and parts meet in shared memory, those of several blocks in
the workspace, where another launch finds them. As task mappings:

    blocks (parts, tasks) * threads (parts, tasks);    tasks (kept loops, the last the fastest)

The last task of a loop begins sooner rather than to have fewer turns: outputs that two tasks
compute have the same values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from spaces.algebra.index import Index, index
from spaces.algebra.integers import ceil_div
from spaces.algebra.mapping import spatial
from spaces.algebra.mapping_emit import indented
from spaces.cuda.abi import parameters
from spaces.cuda.kept.sizes import KeptSizes
from spaces.cuda.kept.thread import Thread
from spaces.cuda.maps.code import HELPERS
from spaces.derivation.kept.view import KeptView
from spaces.kernel import Argument, Call, Kernel, Launch, Source
from spaces.language.functions import REDUCERS

LARGEST = 2**31
"""Elements of an array up to which 32 bits say where they are."""
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
        values, threads = self.sizes.values, (self.threads, 1, 1)
        shared = int(self.sizes.shared_bytes)
        launches = [Launch((int(self.sizes.blocks), 1, 1), threads, shared_bytes=shared)]
        if values["split"] > 1:
            grid = (ceil_div(self.tasks, self.threads), 1, 1)
            launches.append(Launch(grid, threads, entry=f"{self.entry}_merge"))
        workspace = int(self.sizes.workspace_bytes)
        call = Call(self.entry, tuple(self.arguments), workspace, launches=tuple(launches))
        return Kernel(Source("cuda", prelude, self.source), call)

    @property
    def source(self) -> str:
        """The helpers, and all entries."""
        store = "store_stream" if self.sizes.values["stores"] == "stream" else "store_global"
        lines = self._function(self.entry, self._reduce())
        if self.sizes.values["split"] > 1:
            lines += self._function(f"{self.entry}_merge", self._merge())
        return HELPERS.replace("STORE", store) + FILL + "\n".join(lines) + "\n"

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

    @cached_property
    def thread(self) -> Thread:
        """What a thread does."""
        names = {a.array.name: f"x{i}" for i, a in enumerate(self.arguments)}
        return Thread(self.sizes, names, self.integer)

    @property
    def integer(self) -> str:
        """C type of the loops' variables and of offsets."""
        return "i64" if any(a.array.size >= LARGEST for a in self.arguments) else "int"

    # -- entries -----------------------------------------------------------------------------

    def _function(self, name: str, lines: Sequence[str]) -> list[str]:
        named = [
            replace(a, array=replace(a.array, name=f"x{i}")) for i, a in enumerate(self.arguments)
        ]
        given = parameters(named, workspace=self.sizes.values["split"] > 1)
        bounds = f"__launch_bounds__({self.threads})"
        head = f'extern "C" __global__ void {bounds} {name}({given}) {{'
        return [head, *indented(lines), "}"]

    def _reduce(self) -> list[str]:
        """A part of what each task reduces over, for each thread."""
        split, tasks = int(self.sizes.values["split"]), int(self.sizes.block_tasks)
        share = int(self.sizes.values["share"])
        blocks = spatial(split, int(self.sizes.task_blocks)) * spatial(share, tasks)
        worker = index("worker", blocks.num_workers)
        lines = [f"const int worker = blockIdx.x * {self.threads} + threadIdx.x;"]
        return [*lines, *blocks.emit(worker, self._part, integer="int", language="cuda")]

    def _part(self, at: Sequence[Index]) -> list[str]:
        part, own = at
        after = self._saved() if self.sizes.values["split"] > 1 else self.thread.outputs()
        together = self._together()
        begin = f"const int part = {part.text};"
        whole = self.sizes.values["share"] == 1 or not together
        test = "own == task" if whole else f"own == task && threadIdx.x < {self.sizes.block_tasks}"
        return [
            begin,
            *self._at(own.text),
            *self._declared(),
            *self.thread.held(),
            *self._taps(),
            *together,
            f"if ({test}) {{",
            *indented(after),
            "}",
        ]

    def _merge(self) -> list[str]:
        """The outputs of a task, of all parts."""
        own = f"blockIdx.x * {self.threads} + threadIdx.x"
        reads = [
            self.thread.join(f"s[{j}]", f"tw::load_global({self._place('part', j)})")
            for j in range(int(self.sizes.outputs))
        ]
        return [
            *self._at(own),
            *self._declared(),
            f"for (int part = 0; part < {self.sizes.values['split']}; part++) {{",
            *indented(reads),
            "}",
            "if (own == task) {",
            *indented(self.thread.outputs()),
            "}",
        ]

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
        identity = REDUCERS[self.view.reducer].identity
        text = f"{identity!r}f"
        if identity in (float("inf"), float("-inf")):
            text = f"{'-' if identity < 0 else ''}tw::bits_float(0x7f800000u)"
        count = int(self.sizes.outputs)
        return [f"float s[{count}] = {{{', '.join([text] * count)}}};"]

    def _taps(self) -> list[str]:
        """What is reduced over; parts share the outermost loop."""
        lines = self.thread.terms()
        for number, loop in reversed(list(enumerate(self.sizes.rolled))):
            first, step = ("part", self.sizes.parts) if number == 0 else ("0", 1)
            ahead = self.sizes.values["ahead"] if number == len(self.sizes.rolled) - 1 else 1
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
        share, tasks = int(self.sizes.values["share"]), int(self.sizes.block_tasks)
        if share == 1:
            return []

        def slot(j: int, thread: str) -> str:
            return f"shared + 4 * ({j * self.threads} + {thread})"

        count = range(int(self.sizes.outputs))
        other = f"threadIdx.x + q * {tasks}"
        merged = [
            self.thread.join(f"s[{j}]", f"tw::load_shared<float>({slot(j, other)})") for j in count
        ]
        return [
            "const u32 shared = tw::shared_base();",
            *(f"tw::store_shared({slot(j, 'threadIdx.x')}, s[{j}]);" for j in count),
            "tw::sync_block();",
            f"if (threadIdx.x < {tasks}) for (int q = 1; q < {share}; q++) {{",
            *indented(merged),
            "}",
        ]

    def _saved(self) -> list[str]:
        part = f"part / {self.sizes.values['share']}"
        return [
            f"tw::store_global({self._place(part, j)}, s[{j}]);"
            for j in range(int(self.sizes.outputs))
        ]

    def _place(self, part: str, j: int) -> str:
        """C text of where an accumulator of a part is."""
        row = f"({part}) * {int(self.sizes.outputs)} + {j}"
        return f"(float *)workspace + (({row}) * {self.tasks} + task)"
