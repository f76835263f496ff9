"""The C of a program as loop nests, one after the other; workers share their elements in chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.abi import entry_function, worker_function
from tilewright.spaces.cpu.loops.prelude import ACCESS, C_TYPES, HELPERS, LIBRARY
from tilewright.spaces.kernels.text import C
from tilewright.spaces.loops.nest import NestCode
from tilewright.spaces.loops.plan import Nest, Plan
from tilewright.spaces.workloads.array import Array


@dataclass(frozen=True)
class LoopsCode:
    """The kernel called ``entry``; ``operands`` are its arguments in order. ``workers`` take
    ``chunk`` elements of a stage at a time, in turns."""

    plan: Plan
    operands: Sequence[Array]
    entry: str
    workers: int
    chunk: int

    @property
    def source(self) -> str:
        """The C text of helpers, a function for each nest, and the entry."""
        lines = [line for n, nest in enumerate(self.plan.nests) for line in self._function(n, nest)]
        passes = {self._name(n): self._workers(nest) for n, nest in enumerate(self.plan.nests)}
        called = (LIBRARY[name] for name in sorted(LIBRARY.keys() & self.plan.program.functions))
        lines += entry_function(self.entry, passes)
        return HELPERS + "".join(called) + "\n".join(lines) + "\n"

    @property
    def workspace_bytes(self) -> int:
        """Bytes of the stages that others read."""
        return self.plan.workspace_bytes

    def _name(self, number: int) -> str:
        return f"{self.entry}_nest{number}"

    def _workers(self, nest: Nest) -> int:
        """Return the number of workers of a nest: no more than it has chunks."""
        return min(self.workers, ceil_div(self.plan.points(nest.stage.axes), self.chunk))

    def _function(self, number: int, nest: Nest) -> list[str]:
        """Return the C function that computes a worker's share of one nest."""
        code = NestCode(self.plan, nest, self._variables, ACCESS)
        reduced = code.reduction("0", "1") if nest.stage.reducer else code.value()
        element = [*code.at_element(), *reduced, *code.stores()]
        step, begin = self._workers(nest) * self.chunk, f"(i64)worker * {self.chunk}"
        chunk = [
            f"const i64 end = tw_least(first + {self.chunk}, {code.count});",
            *C.loop("n", "end", element, first="first", kind="i64"),
        ]
        share = C.loop("first", code.count, chunk, first=begin, step=step, kind="i64")
        return worker_function(self._name(number), [*self._pointers(nest), *share])

    @cached_property
    def _variables(self) -> Mapping[str, str]:
        own = {array.name: f"a{number}" for number, array in enumerate(self.operands)}
        return own | {f".{name}": f"s{n}" for n, name in enumerate(self.plan.starts)}

    def _pointers(self, nest: Nest) -> list[str]:
        """Declare C pointers to the arrays that one nest reads and writes."""
        bodies = (nest.stage.body, *self.plan.program.bounding(nest.stage))
        read = {read.name for body in bodies for read in body.reads}
        lines = []
        for number, array in enumerate(self.operands):
            writes = nest.output is not None and array.name == nest.output.name
            if writes or (array.name in read and array.name in self.plan.program.operand):
                constant = "" if writes else "const "
                pointer = f"{constant}{C_TYPES[array.dtype]} *{self._variables[array.name]}"
                lines.append(f"{pointer} = call->buffers[{number}];")
        for name, start in self.plan.starts.items():
            if name in read or (nest.kept and name == nest.stage.name):
                kind = "i64" if self.plan.whole[name] else "double"
                place = f"(char *)call->workspace + {start}"
                lines.append(f"{kind} *{self._variables[f'.{name}']} = ({kind} *)({place});")
        return lines
