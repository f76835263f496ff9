"""The C of a program as loop nests, one after the other, whose elements workers share in chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cpu.abi import entry_function
from tilewright.spaces.cpu.vectors.moves import TABLE_TYPES
from tilewright.spaces.loops.nest import ElementAccess, NestCode
from tilewright.spaces.loops.numbers import definitions, library_definitions
from tilewright.spaces.loops.plan import Nest, Plan
from tilewright.spaces.workloads.array import Array

C_TYPES = {
    **TABLE_TYPES,
    "float64": "double",
    "float32": "float",
    "tfloat32": "float",
    "float16": "unsigned short",
    "bfloat16": "unsigned short",
    "float8_e4m3fn": "unsigned char",
    "float8_e5m2": "unsigned char",
    "double": "double",
    "i64": "i64",
}
"""C types of elements, by dtypes, and by the types of the workspace."""
ACCESS = ElementAccess(
    load=lambda kind, place: f"*({place})",
    store=lambda kind, place, value: f"*({place}) = ({C_TYPES[kind]})({value});",
    infinity="__builtin_inf()",
)
_FUNCTION = "static inline __attribute__((unused))"
HELPERS = f"""\
#ifndef TW_LOOPS
#define TW_LOOPS
typedef long i64;
typedef unsigned long u64;
{definitions(_FUNCTION, "__builtin_", ACCESS.infinity)}#endif
"""
"""C definitions that all kernels of a translation unit share: of the first, for whoever calls one
as a part of another kernel has another prelude."""
LIBRARY = {
    name: f"#ifndef TW_LOOPS_{name}\n#define TW_LOOPS_{name}\n{text}#endif\n"
    for name, text in library_definitions(_FUNCTION, "__builtin_").items()
}
"""The same of each function that C's library has, for kernels that call it."""


@dataclass(frozen=True)
class LoopsCode:
    """The kernel called ``entry`` whose arguments are ``operands``: ``workers`` take ``chunk``
    elements of a stage at a time, in turns."""

    plan: Plan
    operands: Sequence[Array]
    entry: str
    workers: int
    chunk: int

    @property
    def source(self) -> str:
        """The helpers, a function for each nest, and the entry."""
        lines = [line for n, nest in enumerate(self.plan.nests) for line in self._function(n, nest)]
        passes = {self._name(n): self._workers(nest) for n, nest in enumerate(self.plan.nests)}
        called = (LIBRARY[name] for name in sorted(LIBRARY.keys() & self.plan.program.functions))
        lines += entry_function(self.entry, passes)
        return HELPERS + "".join(called) + "\n".join(lines) + "\n"

    @property
    def workspace_bytes(self) -> int:
        """The stages that others read."""
        return self.plan.workspace_bytes

    def _name(self, number: int) -> str:
        return f"{self.entry}_nest{number}"

    def _workers(self, nest: Nest) -> int:
        """No more than there are chunks."""
        return min(self.workers, ceil_div(self.plan.points(nest.stage.axes), self.chunk))

    def _function(self, number: int, nest: Nest) -> list[str]:
        """C function that computes a worker's share of one nest."""
        code = NestCode(self.plan, nest, self._variables, ACCESS)
        reduced = code.reduction("0", "1") if nest.stage.reducer else code.value()
        element = [*code.at_element(), *reduced, *code.stores()]
        step, begin = self._workers(nest) * self.chunk, f"(i64)worker * {self.chunk}"
        return [
            f"static void {self._name(number)}(void *context, int worker) {{",
            *indented(["const tw_call *call = context;", *self._pointers(nest)]),
            f"  for (i64 first = {begin}; first < {code.count}; first += {step}) {{",
            f"    const i64 end = tw_least(first + {self.chunk}, {code.count});",
            "    for (i64 n = first; n < end; n++) {",
            *indented(indented(indented(element))),
            "    }",
            "  }",
            "}",
        ]

    @cached_property
    def _variables(self) -> Mapping[str, str]:
        own = {array.name: f"a{number}" for number, array in enumerate(self.operands)}
        return own | {f".{name}": f"s{n}" for n, name in enumerate(self.plan.starts)}

    def _pointers(self, nest: Nest) -> list[str]:
        """C variables for the arrays that one nest reads and writes."""
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
