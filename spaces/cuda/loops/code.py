"""The CUDA C++ of a program as loop nests, a launch for each, whose threads take elements in turns.

Several neighbouring threads may share the terms of one element. They join their results pairwise,
in shared memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cuda.abi import C_TYPES, function, parameters
from tilewright.spaces.kernel import Argument, Call, Kernel, Launch, Source
from tilewright.spaces.loops.nest import TYPES, ElementAccess, NestCode
from tilewright.spaces.loops.numbers import FORMATS, definitions, library_definitions
from tilewright.spaces.loops.plan import ELEMENT, Nest, Plan

MOST_BLOCKS = 1 << 16
"""The most blocks of a launch; for more elements, threads take several."""
INFINITY = "((double)tw::bits_float(0x7f800000u))"
PRELUDE = definitions("TW_INLINE", "", INFINITY)
LIBRARY = library_definitions("TW_INLINE", "")


def _load(kind: str, place: str) -> str:
    bits = ".bits" if kind in FORMATS else ""
    return f"tw::load_global({place}){bits}"


def _store(kind: str, place: str, value: str) -> str:
    name = C_TYPES.get(kind, kind)
    bits = "u8" if kind.startswith("float8") else "u16"
    made = f"{name}{{({bits})({value})}}" if kind in FORMATS else f"({name})({value})"
    return f"tw::store_global({place}, {made});"


ACCESS = ElementAccess(_load, _store, INFINITY)


@dataclass(frozen=True)
class LoopsCode:
    """The kernel named ``entry`` with these ``arguments``.

    Blocks have ``threads`` threads, of which ``sharing`` share the terms of an element.
    """

    plan: Plan
    arguments: tuple[Argument, ...]
    entry: str
    threads: int
    sharing: int

    def kernel(self) -> Kernel:
        """Return the kernel, with a function and a launch for each nest."""
        nests = list(enumerate(self.plan.nests))
        text = "\n".join(line for number, nest in nests for line in self._function(number, nest))
        launches = tuple(self._launch(number, nest) for number, nest in nests)
        size = self.plan.workspace_bytes
        call = Call(self.entry, self.arguments, size, launches=launches)
        called = (LIBRARY[name] for name in sorted(LIBRARY.keys() & self.plan.program.functions))
        return Kernel(Source("cuda", PRELUDE + "".join(called), text + "\n"), call)

    def _name(self, number: int) -> str:
        return f"{self.entry}_nest{number}"

    def _sharing(self, nest: Nest) -> int:
        """Return the threads that share an element: one where nothing is reduced."""
        return self.sharing if nest.stage.reducer else 1

    def _at_once(self, nest: Nest) -> int:
        """Return the elements of a block at a time."""
        return self.threads // self._sharing(nest)

    def _launch(self, number: int, nest: Nest) -> Launch:
        elements = self.plan.points(nest.stage.axes)
        blocks = min(MOST_BLOCKS, ceil_div(elements, self._at_once(nest)))
        shared = 2 * ELEMENT * self.threads if self._sharing(nest) > 1 else 0
        sizes = (blocks, 1, 1), (self.threads, 1, 1)
        return Launch(*sizes, shared_bytes=shared, entry=self._name(number))

    @cached_property
    def _variables(self) -> Mapping[str, str]:
        own = {a.array.name: f"a{number}" for number, a in enumerate(self.arguments)}
        return own | {f".{name}": f"s{n}" for n, name in enumerate(self.plan.starts)}

    def _function(self, number: int, nest: Nest) -> list[str]:
        """Return the function of one nest."""
        named = [
            replace(a, array=replace(a.array, name=self._variables[a.array.name]))
            for a in self.arguments
        ]
        given = parameters(named, self.plan.workspace_bytes > 0)
        lines = [*self._workspace(), *self._elements(nest)]
        return function(self._name(number), self.threads, given, lines)

    def _workspace(self) -> list[str]:
        """Print pointers to the arrays of the workspace."""
        lines = []
        for name, start in self.plan.starts.items():
            kind = TYPES[self.plan.whole[name]]
            pointer = self._variables[f".{name}"]
            lines.append(f"{kind} *const {pointer} = ({kind} *)(workspace + {start});")
        return lines

    def _elements(self, nest: Nest) -> list[str]:
        """Print the loop over the elements of a block.

        All of its threads take equally many turns, the last ones at an element that another thread
        writes.
        """
        code = NestCode(self.plan, nest, self._variables, ACCESS)
        sharing, at_once = self._sharing(nest), self._at_once(nest)
        first, step = f"(i64)blockIdx.x * {at_once}", f"(i64)gridDim.x * {at_once}"
        reduced = self._reduced(code, sharing) if nest.stage.reducer else code.value()
        writes = "mine < COUNT" if sharing == 1 else "mine < COUNT && part == 0"
        return [
            *([f"const int part = threadIdx.x % {sharing};"] if sharing > 1 else []),
            f"for (i64 first = {first}; first < {code.count}; first += {step}) {{",
            f"  const i64 mine = first + threadIdx.x / {sharing};",
            f"  const i64 n = mine < {code.count} ? mine : {code.count - 1};",
            *indented([*code.at_element(), *reduced]),
            f"  if ({writes.replace('COUNT', str(code.count))}) {{",
            *indented(indented(list(code.stores()))),
            "  }",
            "}",
        ]

    def _reduced(self, code: NestCode, sharing: int) -> list[str]:
        """Print the value of an element, whose terms ``sharing`` threads reduce."""
        if sharing == 1:
            return code.reduction("0", "1")
        kind = TYPES[code.body.whole]
        values = "tw::shared_base() + threadIdx.x * 8"
        places = f"{values} + {ELEMENT * self.threads}"
        put = [f"tw::store_shared({values}, value);"]
        join = [f"const {kind} other = tw::load_shared<{kind}>({values} + half * 8);"]
        if code.is_place:
            put.append(f"tw::store_shared({places}, place);")
            join.append(f"const i64 elsewhere = tw::load_shared<i64>({places} + half * 8);")
            joined = ["if (elsewhere >= 0) {", *indented(code.joined("other", "elsewhere")), "}"]
        else:
            joined = code.joined("other", "")
        return [
            *code.reduction("part", str(sharing)),
            *put,
            "tw::sync_block();",
            f"for (int half = {sharing // 2}; half > 0; half /= 2) {{",
            "  if (part < half) {",
            *indented(indented([*join, *joined, *put])),
            "  }",
            "  tw::sync_block();",
            "}",
        ]
