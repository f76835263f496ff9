"""The CUDA C++ of a walk along steps: a block has some columns of the state of one row.

As task mappings:

    blocks:   spatial(rows, groups of columns)
    threads:  spatial(1, warps) * spatial(parts, columns)

The state stays in registers. Operands of many steps at a time are copied to stages of shared
memory, while the steps before are computed; within a stage, threads meet in their warps alone. What
all columns read and takes many instructions, such as powers of decays, is computed once for a block
before the steps of a stage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.spaces.algebra.index import Index, index, variable
from tilewright.spaces.algebra.mapping import spatial
from tilewright.spaces.algebra.mapping_emit import only_task
from tilewright.spaces.cuda import scalar_math
from tilewright.spaces.cuda.abi import C_TYPES, function, index_type, parameters
from tilewright.spaces.cuda.blocks.copies.tile_copy import TileCopy
from tilewright.spaces.cuda.stepped.sizes import StepSizes
from tilewright.spaces.cuda.stepped.sources import Kind, Source
from tilewright.spaces.cuda.stepped.step import NUMBER, PART, STEP, StepWriter
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.derivation.rows.addresses import Steps
from tilewright.spaces.kernel import Argument, Call, Kernel, Launch
from tilewright.spaces.kernel import Source as Text
from tilewright.spaces.kernels.text import CUDA

THREAD = "thread"
"""The C variable of the place of a thread in its block."""
AHEAD = 4
"""Steps that are written one after the other where they are computed ahead."""


@dataclass(frozen=True)
class SteppedCode:
    """The kernel named ``entry`` whose arguments are ``arguments``."""

    sizes: StepSizes
    arguments: Sequence[Argument]
    entry: str

    def kernel(self) -> Kernel:
        """Return the kernel with its launch and the functions that it calls."""
        sizes = self.sizes
        launch = Launch(
            (int(sizes.blocks), 1, 1),
            (int(sizes.threads), 1, 1),
            shared_bytes=int(sizes.shared_bytes),
        )
        functions = {*scalar_math.ALWAYS, *sizes.view.program.functions}
        call = Call(self.entry, tuple(self.arguments), launches=(launch,))
        return Kernel(Text("cuda", scalar_math.prelude(functions), self.source), call)

    @property
    def source(self) -> str:
        """The CUDA C++ of the entry."""
        lines = [*self._places(), *self._walk()]
        given = parameters(
            replace(a, array=replace(a.array, name=self._names[a.array.name]))
            for a in self.arguments
        )
        return "\n".join(function(self.entry, int(self.sizes.threads), given, lines)) + "\n"

    @cached_property
    def _names(self) -> Mapping[str, str]:
        """The C parameters of arrays."""
        return {a.array.name: f"array{n}" for n, a in enumerate(self.arguments)}

    # -- places --------------------------------------------------------------------------------

    @cached_property
    def _integer(self) -> str:
        return index_type(argument.array for argument in self.arguments)

    @cached_property
    def _rows(self) -> Mapping[str, Index]:
        """The C variables of the indices of a row."""
        extent = self.sizes.view.program.extent
        return {a: variable(f"a{n}", extent[a]) for n, a in enumerate(self.sizes.view.rows)}

    def _places(self) -> list[str]:
        """Print where a thread is: its row, its part of the points, and its columns."""
        sizes, view = self.sizes, self.sizes.view
        sharing, warps = int(sizes.row_threads), int(sizes.warps)
        threads = spatial(1, warps) * spatial(sharing, WARP // sharing)
        part, column = only_task(threads, index("(int)threadIdx.x", int(sizes.threads)))
        extents = [view.extent(axis) for axis in view.rows]
        blocks = spatial(*extents, int(sizes.column_blocks))
        *rows, group = only_task(blocks, index("(int)blockIdx.x", int(sizes.blocks)))
        lines = [
            *(["const u32 shared = tw::shared_base();"] if int(sizes.shared_bytes) else []),
            *([f"const int {PART} = {part};"] if sharing > 1 else [f"const int {PART} = 0;"]),
            f"const int column = {column};",
            f"const int column0 = {group * int(sizes.columns)};",
        ]
        for name, place in zip(self._rows.values(), rows, strict=True):
            lines.append(f"const {self._integer} {name} = {place};")
        return [*lines, *self._columns(), *self._pointers()]

    def _columns(self) -> list[str]:
        """Print the columns of a thread, which are the last one beyond it."""
        sizes, extent, lines = self.sizes, self.sizes.view.extent(self.sizes.view.lane), []
        vector = int(sizes.vector)
        for v in range(vector):
            place = (variable("column0") + variable("column") * vector + v).text
            if extent % int(sizes.columns):
                place = f"{place} < {extent} ? {place} : {extent - 1}"
            lines.append(f"const {self._integer} c{v} = {place};")
        return lines

    def _pointers(self) -> list[str]:
        """Print pointers to the first elements of a row."""
        view = self.sizes.view
        lines = []
        for source in self.sizes.sources.values():
            kind, place = C_TYPES[source.array.dtype], self._first(source.steps)
            if source.kind is Kind.STAGED and view.direction < 0:
                last = view.extent(view.position) - 1
                place = place + last * source.steps.step(view.position)
            array = self._names[source.read.name]
            lines.append(f"const {kind} *const {source.name} = {array} + {place};")
        for number, output in enumerate(view.outputs):
            place = self._first(view.written(output))
            kind, array = C_TYPES[output.dtype], self._names[output.name]
            lines.append(f"{kind} *const y{number} = {array} + {place};")
        return lines

    def _first(self, steps: Steps) -> Index:
        """Return the place of the first element of a row."""
        place = Index(constant=steps.offset)
        for axis, variable_of in self._rows.items():
            place = place + variable_of * steps.step(axis)
        return place

    @property
    def _left(self) -> Mapping[str, str]:
        """C text of where elements are that threads leave for others."""
        found, end = dict[str, str](), int(self.sizes.stages) * int(self.sizes.stage_bytes)
        for stage in self.sizes.crossing:
            found[stage.name] = f"shared + {end}"
            end += 2 * int(self.sizes.crossing_bytes(stage))
        return found

    @property
    def _ahead(self) -> Mapping[str, str]:
        """C text of where the step of what is computed ahead is."""
        sizes, found = self.sizes, dict[str, str]()
        own = [stage for stage in sizes.ahead if stage.name in sizes.shown]
        end = int(sizes.shared_bytes) - int(sizes.steps) * sum(map(sizes.ahead_row, own))
        for stage in own:
            found[stage.name] = f"shared + {end} + step * {sizes.ahead_row(stage)}"
            end += int(sizes.steps) * sizes.ahead_row(stage)
        return found

    # -- the walk ------------------------------------------------------------------------------

    @cached_property
    def _copies(self) -> Mapping[Source, TileCopy]:
        sizes = self.sizes
        shape = (int(sizes.steps), int(sizes.columns), int(sizes.threads))
        return {source: source.copy(*shape, self._integer) for source in sizes.staged}

    @cached_property
    def _starts(self) -> Mapping[Source, int]:
        """The bytes before each operand in a stage."""
        starts, end = dict[Source, int](), 0
        for source in self.sizes.staged:
            starts[source] = end
            end += int(self.sizes.source_bytes(source))
        return starts

    def _walk(self) -> list[str]:
        """Print the walk along all steps."""
        sizes, extent = self.sizes, self.sizes.view.extent(self.sizes.view.position)
        writer = self._writer(sizes)
        lines, step = writer.prepared(), writer.write()
        if not self._copies:
            return [*lines, *self._loop(extent, [*self._at("step"), *step])]
        if not sizes.ahead:
            return [*lines, *self._in_chunks(step, [])]
        all_threads = {**sizes.values, "row_threads": int(sizes.threads)}
        before = self._writer(replace(sizes, values=all_threads), THREAD, "a_", True)
        declared = f"const int {THREAD} = (int)threadIdx.x;"
        return [declared, *lines, *before.prepared(), *self._in_chunks(step, before.write())]

    def _writer(
        self, sizes: StepSizes, part: str = PART, prefix: str = "", of_ahead: bool = False
    ) -> StepWriter:
        """Return the writer of what is computed ahead of the steps, or of what is computed in
        them."""
        view = self.sizes.view
        stages = tuple(s for s in view.stages if (s in self.sizes.ahead) == of_ahead)
        pointers = {output.name: f"y{n}" for n, output in enumerate(view.outputs)}
        places = {source: self._in_stage(source) for source in self._copies}
        known = (self._rows, pointers, places, self._left, self._ahead)
        return StepWriter(replace(view, stages=stages), sizes, *known, part, prefix)

    def _in_chunks(self, step: Sequence[str], before: Sequence[str]) -> list[str]:
        """Print the walk along all steps, whose operands are copied some steps at a time; what is
        computed ``before`` them is for as many."""
        sizes, copies = self.sizes, self._copies
        extent = sizes.view.extent(sizes.view.position)
        chunk, ahead = int(sizes.steps), int(sizes.stages) - 1
        size, count = int(sizes.stage_bytes), int(sizes.chunks)
        whole, most = extent % chunk == 0, f"left < {chunk} ? left : {chunk}"
        at, end = self._at(f"chunk * {chunk} + step"), chunk if whole else "end"
        body = [
            f"tw::cp_async_wait<{ahead - 1}>();",
            "tw::sync_block();",
            f"const u32 stage = shared + chunk % {ahead + 1} * {size};",
            f"const u32 next = shared + (chunk + {ahead}) % {ahead + 1} * {size};",
            f"const bool more = chunk + {ahead} < {count};",
            *CUDA.when("more", self._fetch()),
            "tw::cp_async_commit();",
            *([] if whole else [f"const int left = {extent} - chunk * {chunk}, end = {most};"]),
            *(self._computed_ahead(end, [*at, *before]) if before else []),
            *self._loop(end, [*at, *step]),
            *self._settled("more"),
        ]
        begun = [
            f"const u32 next = shared + chunk * {size};",
            *self._fetch(),
            *self._settle(),
        ]
        filled = [*CUDA.when(f"chunk < {count}", begun), "tw::cp_async_commit();"]
        return [
            *(line for source, copy in copies.items() for line in copy.start("0", _corner(source))),
            *(line for copy in self._pending for line in copy.declare()),
            *([] if whole else ["int fetched = 0;"]),
            *CUDA.loop("chunk", ahead, filled, unroll=True),
            *CUDA.loop("chunk", count, body, unroll=1),
        ]

    def _computed_ahead(self, end: int | str, step: Sequence[str]) -> list[str]:
        """Print how all threads of a block compute what all columns of the next steps read."""
        return [*CUDA.loop("step", end, step, unroll=AHEAD), "tw::sync_block();"]

    def _at(self, number: str) -> list[str]:
        """Print the index of the step that has a number in the order of steps."""
        view, lines = self.sizes.view, list[str]()
        if self.sizes.crossing:
            lines.append(f"const {self._integer} {NUMBER} = {number};")
            number = NUMBER
        place = number if view.direction > 0 else f"{view.extent(view.position) - 1} - ({number})"
        return [*lines, f"const {self._integer} {STEP} = {place};"]

    def _loop(self, end: int | str, step: Sequence[str]) -> list[str]:
        """Print a loop over steps."""
        return CUDA.loop("step", end, step, unroll=int(self.sizes.unroll))

    # -- copies --------------------------------------------------------------------------------

    def _in_stage(self, source: Source) -> str:
        """Return C text of where the elements of a step are in shared memory."""
        row = int(source.row(int(self.sizes.columns))) * source.array.element.bytes
        return f"stage + {self._starts[source]} + step * {row}"

    @property
    def _pending(self) -> list[TileCopy]:
        """The copies that pass through registers."""
        return [copy for copy in self._copies.values() if not copy.can_be_asynchronous]

    def _fetch(self) -> list[str]:
        """Print how copies of the next steps to the stage at ``next`` start."""
        lines: list[str] = []
        for source, copy in self._copies.items():
            corner = ("fetched", _corner(source))
            if copy.can_be_asynchronous:
                lines += copy.copy(f"next + {self._starts[source]}", *corner)
            else:
                lines += copy.load(*corner)
            lines += copy.advance()
        whole = self.sizes.view.extent(self.sizes.view.position) % int(self.sizes.steps) == 0
        return lines if whole else [*lines, f"fetched += {int(self.sizes.steps)};"]

    def _settle(self) -> list[str]:
        """Print how steps that came through registers are stored."""
        return [
            line
            for source, copy in self._copies.items()
            if not copy.can_be_asynchronous
            for line in copy.store(f"next + {self._starts[source]}")
        ]

    def _settled(self, test: str) -> list[str]:
        lines = self._settle()
        return CUDA.when(test, lines) if lines else []


def _corner(source: Source) -> str:
    """Return the first element of a step that a block has."""
    return "column0" if source.by_lane else "0"
