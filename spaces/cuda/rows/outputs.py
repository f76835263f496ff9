"""The stores of a row's results and elements to the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.rows.context import Context
from tilewright.spaces.cuda.rows.long_sums import per_row
from tilewright.spaces.cuda.rows.source import Access
from tilewright.spaces.cuda.rows.sweep import Level, Sweep
from tilewright.spaces.cuda.scalar_code import Value
from tilewright.spaces.derivation.rows.view import RowOutput
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.language.program import Output


def stored(value: Value, array: Output) -> str:
    """Return C text of a value in the type of the output ``array``."""
    if array.element.is_integer and value.whole:
        return f"({C_TYPES[array.dtype]}){value}"
    if array.dtype in ("float64", "float32"):
        return f"({C_TYPES[array.dtype]}){value}"
    return f"tw::from_float<{C_TYPES[array.dtype]}>({value})"


def row_outputs(context: Context) -> list[str]:
    """Print the stores of outputs that have one value for each row."""
    found = [o for o in context.rows.outputs if not o.place.by_column]
    if not found:
        return []
    lines = []
    for output in found:
        access = _access(context, output)
        value = stored(context.scope.value(output.value), output.array)
        place = f"{access.argument} + {access.start('row[k]', {})}"
        lines.append(f"tw::store_global({place}, {value});")
    tests = ["part == 0", *([context.valid] if context.valid else [])]
    return per_row(context.at_once, CUDA.when(" && ".join(tests), lines))


@dataclass(frozen=True)
class ElementOutputs:
    """The sweep that stores the outputs with a value for each element."""

    context: Context

    @property
    def outputs(self) -> list[RowOutput]:
        """The outputs with a value for each element."""
        return [o for o in self.context.rows.outputs if o.place.by_column]

    def lines(self) -> list[str]:
        """Print the sweep, after the pointers to where rows of outputs start."""
        context, pointers = self.context, []
        for n, output in enumerate(self.outputs):
            if output.array.name in context.rows.summed:
                continue
            access = _access(context, output)
            kind = C_TYPES[output.array.dtype]
            start = access.start("row[k]", {})
            pointers.append(f"{kind} *to{n}[{context.at_once}];")
            pointers += per_row(context.at_once, [f"to{n}[k] = {access.argument} + {start};"])
        return [*pointers, *Sweep(context, [self._level()]).lines()]

    def _level(self) -> Level:
        context = self.context
        vector = context.number("vector")
        declare: list[str] = []
        after: list[str] = []
        for n, output in enumerate(self.outputs):
            declare.append(f"{context.real} o{n}[{vector}];")
            after += self._store(n, output)
        if context.valid:
            after = CUDA.when(context.valid, after)
        values = [o.value for o in self.outputs]
        return Level(context.scope, values, _assigned, declare=declare, after=after)

    def _store(self, n: int, output: RowOutput) -> Sequence[str]:
        context, access = self.context, _access(self.context, output)
        if output.array.name in context.rows.summed:
            return self._added(n, output)
        if not access.is_vector:
            return [
                f"tw::store_global(to{n}[k] + ({access.along(f'(column + {i})')}), "
                f"{stored(Value(f'o{n}[{i}]'), output.array)});"
                for i in range(access.vector)
            ]
        if access.paired:
            kind = C_TYPES[output.array.dtype]
            words = [
                f"tw::pack2<{kind}>(o{n}[{2 * i}], o{n}[{2 * i + 1}])" for i in range(access.words)
            ]
        else:
            words = [stored(Value(f"o{n}[{i}]"), output.array) for i in range(access.words)]
        stream = "_stream" if context.values["stores"] == "stream" else ""
        cast = "(u32 *)" if access.paired else ""
        place = f"{cast}(to{n}[k] + {access.along('column')})"
        return [
            f"const {access.kind} w{n}[{access.words}] = {{{', '.join(words)}}};",
            *(
                f"tw::store{stream or '_global'}<{size}>({place} + {start}, w{n} + {start});"
                for start, size in access.chunks()
            ),
        ]

    def _added(self, n: int, output: RowOutput) -> list[str]:
        """Print how the elements of a vector are added to the sums of their columns."""
        rows, vector = self.context.rows, self.context.number("vector")
        sums = [o.array.name for o in rows.outputs if o.array.name in rows.summed]
        own = f"own{sums.index(output.array.name)}"
        return [f"{own}[u * {vector} + {i}] += o{n}[{i}];" for i in range(vector)]


def _assigned(texts: Sequence[str]) -> list[str]:
    return [f"o{n}[i] = {text};" for n, text in enumerate(texts)]


def _access(context: Context, output: RowOutput) -> Access:
    name = context.arguments[output.array.name]
    return Access(context.rows, output.array, name, output.place, context.number("vector"))
