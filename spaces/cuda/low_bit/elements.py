"""The expressions of a product with packed codes as functions: activations, zero points and scales,
entries of a table, and what is written of a finished sum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cuda.abi import C_TYPES, parameters
from tilewright.spaces.cuda.loops.code import ACCESS
from tilewright.spaces.derivation.products.coded import CodedProduct
from tilewright.spaces.kernel import Argument
from tilewright.spaces.language.program import Program
from tilewright.spaces.language.tree import Binary, Call, Expression, Number, Read
from tilewright.spaces.loops.nest import NestCode
from tilewright.spaces.loops.numbers import FORMATS
from tilewright.spaces.loops.plan import Plan
from tilewright.spaces.loops.scalars import Value
from tilewright.spaces.low_bit.axes import axis_variable, row_axes

Lines = list[str]
MARGIN = 3
"""Bytes less numbers this far from both ends are sums of two exponents of normal floats."""


@dataclass(frozen=True)
class ElementCode(NestCode):
    """A nest in which finished sums, the operand ``sums``, are the variable ``total``, and whose
    numbers of 16 and 8 bits are converted by instructions."""

    sums: str

    def _entry(self, read: Read, lines: Lines) -> Value:
        if read.name == self.sums:
            return Value("(double)total", False)
        return super()._entry(read, lines)

    def _loaded(self, kind: str, place: str, whole: bool) -> Value:
        if kind in FORMATS:
            return Value(f"(double)tw::to_float(tw::load_global({place}))", False)
        return super()._loaded(kind, place, whole)

    def _store(self, kind: str, place: str, value: Value) -> str:
        if kind in FORMATS and not value.whole:
            made = f"tw::from_float<{C_TYPES[kind]}>((float){value.text})"
            return f"tw::store_global({place}, {made});"
        return super()._store(kind, place, value)


@dataclass(frozen=True)
class Elements:
    """The functions of the kernel called ``entry``, which take pointers to all ``arguments``, and
    then numbers of a row, a column or a term of the depth."""

    product: CodedProduct
    arguments: Sequence[Argument]
    entry: str

    # -- calls -------------------------------------------------------------------------------------

    def call(self, name: str, *given: str) -> str:
        """C call of the function ``name``."""
        return f"{self.entry}_{name}({', '.join([*self.names.values(), *given])})"

    @cached_property
    def names(self) -> Mapping[str, str]:
        """The variable of each array."""
        return {a.array.name: f"x{number}" for number, a in enumerate(self.arguments)}

    @property
    def named(self) -> tuple[Argument, ...]:
        """The arguments under the names of their variables."""
        return tuple(
            replace(a, array=replace(a.array, name=self.names[a.array.name]))
            for a in self.arguments
        )

    # -- functions ---------------------------------------------------------------------------------

    def functions(self) -> Lines:
        """Return the lines of all functions that the kernel calls."""
        product = self.product
        group = [*self._row(), *self._axis(product.column), *self._axis(product.depth)]
        lines = self._value(
            "activation", product.activation, [*self._row(), *self._axis(product.depth)]
        )
        for name, node in (("zero", product.zero), ("scale", product.scale)):
            if node is not None:
                lines += self._power(name, node, group) or self._value(name, node, group)
        if product.matrix is not None:
            lines += self._number("matrix", product.matrix, product.codes.shape[0])
        if chosen := product.chosen_row:
            activation = product.program.operand[product.activation.reads[0].name]
            lines += self._number("source", chosen, activation.shape[0])
        if product.table is not None:
            lines += self._table(product.table.name, product.codes.element.bits)
        return [*lines, *self._write()]

    def _function(self, kind: str, name: str, given: str, body: Lines) -> Lines:
        arrays = parameters(self.named)
        head = f"TW_INLINE {kind} {self.entry}_{name}({arrays}, {given}) {{"
        return [head, *indented(body), "}"]

    def _value(self, name: str, node: Expression, axes: Lines) -> Lines:
        lines, value = self._nest(self.product.program).expression(node)
        body = [*axes, *lines, f"return (float)({value.real});"]
        return self._function("float", name, "i64 row, i64 column, i64 depth", body)

    def _power(self, name: str, node: Expression, axes: Lines) -> Lines:
        """Return the lines of the function of a power of two, whose exponent is a byte less a
        number; none of any other expression. The power is a product of two: one float has not all
        of these exponents."""
        match node:
            case Call("exp2", (Binary("-", Read() as read, Number(number)),)):
                is_byte = self.product.program.operand[read.name].dtype == "uint8"
                if not (is_byte and number.is_integer() and MARGIN <= number <= 255 - MARGIN):
                    return []
            case _:
                return []
        lines, value = self._nest(self.product.program).expression(read)
        power = f"const i32 power = (i32){value.text} - {int(number)}, half = power / 2;"
        halves = (f"tw::bits_float((u32)({each} + 127) << 23)" for each in ("half", "power - half"))
        body = [*axes, *lines, power, f"return {' * '.join(halves)};"]
        return self._function("float", name, "i64 row, i64 column, i64 depth", body)

    def _number(self, name: str, node: Expression, below: int) -> Lines:
        """Return the lines of the function of a row's number in an array."""
        lines, value = self._nest(self.product.program).expression(node)
        within = f"tw_whole_within({value.text}, {below})"
        return self._function("i64", name, "i64 row", [*self._row(), *lines, f"return {within};"])

    def _table(self, name: str, bits: int) -> Lines:
        nest = self._nest(self.product.program)
        body = ["switch (code) {"]
        for code in range(2**bits):
            lines, value = nest.expression(Read(name, (Number(float(code)),)))
            body += [*lines, f"case {code}: return (float)({value.real});"]
        return self._function("float", "entry", "int code", [*body, "}", "return 0.0f;"])

    def _write(self) -> Lines:
        nest = self._nest(self.product.last)
        body = [*self._row(), *self._axis(self.product.column), *nest.value(), *nest.stores()]
        return self._function("void", "write", "i64 row, i64 column, float total", body)

    # -- axes --------------------------------------------------------------------------------------

    def _nest(self, program: Program) -> ElementCode:
        plan = Plan(program)
        return ElementCode(plan, plan.nests[-1], self.names, ACCESS, self.product.sums.name)

    def _axis(self, name: str) -> Lines:
        """C variable of an axis."""
        variable = "column" if name == self.product.column else "depth"
        return [f"const i64 {axis_variable(self.product, name)} = {variable};"]

    def _row(self) -> Lines:
        """C variables of the axes of a row."""
        return row_axes(self.product, "i64", "row")
