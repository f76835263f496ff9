"""Workloads: programs with everything about them fixed, ready to be tuned.

Every workload is a program. One that multiplies matrices is also seen as a
:class:`~spaces.workloads.matmul.Matmul`, which is its shortest spelling. Templates read the one or
the other; everything after them (search, cost model, measuring, database) uses this class only.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.spaces.validation.text import brief
from tilewright.spaces.workloads.array import Array

if TYPE_CHECKING:
    from tilewright.spaces.derivation.work import Work
    from tilewright.spaces.language.program import Program
    from tilewright.spaces.workloads.matmul import Matmul

INTENSE = 16
"""FLOPs for each byte that must move, from which arithmetic bounds a kernel on most machines."""
PROGRAM = "program"
"""The operator of a program without a name. Its parameter ``text`` is the program as it was
written, in one line."""
HALVES = ("float16", "bfloat16")
"""Dtypes of 16 bits in which packed codes are multiplied."""

Parameter = int | float | str


@dataclass(frozen=True, eq=False, repr=False)
class Workload:
    """One program with fixed shapes, dtypes and layouts. Hashable; equal ones have equal keys.

    Made by :func:`spaces.operators.workload`. ``operator`` is a name for people, and
    ``parameters`` are what it was made from, as JSON values. ``asked`` is the program that it was
    asked for by, with its constants; None if a product's words were it. ``matmul`` is the product
    of matrices that it is; else ``obstacle`` says why it is none, in words.
    """

    operator: str
    parameters: tuple[tuple[str, Parameter], ...]
    asked: Program | None
    obstacle: str = ""
    matmul: Matmul | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Workload) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @cached_property
    def program(self) -> Program:
        """The program without constants, whose arrays are the workload's as they lie in memory."""
        if self.matmul:
            return self.matmul.program
        from tilewright.spaces.derivation.constants import without_constants
        from tilewright.spaces.workloads.stored_weights import with_stored

        assert self.asked is not None
        return with_stored(without_constants(self.asked))

    @property
    def written(self) -> Program:
        """The program with the names, the shapes and the order that its author gave to arrays."""
        asked = self.asked or (self.matmul and self.matmul.written)
        return asked or self.program

    @property
    def key(self) -> str:
        """The identity as canonical text, the same in every process and version of Python: what the
        program means, however it is written."""
        return self.matmul.key if self.matmul else f"{PROGRAM} {self.program.digest}"

    @cached_property
    def digest(self) -> str:
        """Short hexadecimal digest of :attr:`key`."""
        return hashlib.sha256(self.key.encode()).hexdigest()[:16]

    def __str__(self) -> str:
        """Return what ``workload`` reads."""
        return self._text

    @cached_property
    def _text(self) -> str:
        if self.matmul:
            return self.matmul.text
        words, first = dict(self.parameters), self.operator
        if first == PROGRAM:
            first = f'"{words.pop("text", "; ".join(self._lines))}"'
        return " ".join([first, *(f"{name}={_word(value)}" for name, value in words.items())])

    def __repr__(self) -> str:
        return brief(f"<Workload {self}>", 1)

    @property
    def _lines(self) -> list[str]:
        return self.program.text.split("\n")

    def to_json(self) -> dict[str, Any]:
        """Return the description as a JSON object, which ``workload_from_json`` reads: the operator
        and its parameters, and the program's lines unless the words of a product say all."""
        words = {"operator": self.operator, "parameters": dict(self.parameters)}
        return words if self.matmul else words | {"program": self._lines}

    @property
    def words(self) -> Mapping[str, Parameter]:
        """The properties that workloads share which differ in extents alone: stages and dtypes of
        all arrays, or those of a product's words."""
        if self.matmul:
            return self.matmul.properties
        stages = "\n".join(map(str, (*self.program.conditions, *self.program.stages)))
        arrays = (*self.program.operands, *self.program.outputs)
        return {"stages": stages} | {array.name: array.dtype for array in arrays}

    @property
    def formula(self) -> str:
        """The lines of the stages, for people to read."""
        return "; ".join(map(str, (*self.program.conditions, *self.program.stages)))

    @property
    def extents(self) -> Mapping[str, int]:
        """Axis name to extent."""
        return self.matmul.extents if self.matmul else self.program.extent

    @cached_property
    def inputs(self) -> Sequence[Array]:
        """All arrays that a kernel reads as they lie in memory, in the order in which it takes
        them."""
        if self.matmul:
            return self.matmul.inputs
        return tuple(operand.stored for operand in self.program.operands)

    @property
    def outputs(self) -> Sequence[Array]:
        """All arrays that a kernel writes, in the order in which it takes them."""
        return self.matmul.outputs if self.matmul else self.program.outputs

    @property
    def operands(self) -> tuple[Array, ...]:
        """All arrays in the order in which a kernel takes them: inputs, then outputs."""
        return (*self.inputs, *self.outputs)

    @cached_property
    def coded(self) -> Sequence[Array]:
        """The inputs whose elements are packed codes, with the shapes and dtypes of these."""
        return () if self.matmul else tuple(o for o in self.program.operands if o.coded)

    def given(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Return inputs of a problem as kernels take them: elements that are codes packed."""
        coded = {array.name: array for array in self.coded}
        return {
            name: coded[name].given(array) if name in coded else array
            for name, array in inputs.items()
        }

    @property
    def accumulator(self) -> str:
        """The dtype that sums are kept in; of a program float64 if any array is, else float32."""
        return self.matmul.accumulator if self.matmul else self.program.computed_in

    @cached_property
    def arithmetic(self) -> Sequence[str]:
        """The dtypes of the factors of products, which decide how fast arithmetic can be; without
        products the accumulator's, because values are widened as they are loaded. So are packed
        codes, unless they meet floats of 16 bits.
        """
        if self.matmul:
            return self.matmul.arithmetic
        if self.coded:
            return (self._beside_codes(),)
        from tilewright.spaces.derivation.products.multiplied import multiplied_dtypes
        from tilewright.spaces.derivation.products.view import written_product_of

        view = written_product_of(self)
        if isinstance(view, str):
            return multiplied_dtypes(self.program) or (self.accumulator,)
        return view.left.operand.dtype, view.right.operand.dtype

    def _beside_codes(self) -> str:
        """The dtype in which packed codes are multiplied."""
        from tilewright.spaces.derivation.products.coded import coded_product_of
        from tilewright.spaces.language.tree import Read

        product = coded_product_of(self.program)
        if isinstance(product, str) or not isinstance(product.activation, Read):
            return self.accumulator
        own = self.program.operand[product.activation.name].dtype
        return own if own in HALVES else self.accumulator

    @cached_property
    def functions(self) -> Collection[str]:
        """Names of the functions that are called beside arithmetic, such as ``exp``."""
        return self.matmul.functions if self.matmul else self.program.functions

    @cached_property
    def _work(self) -> Work:
        from tilewright.spaces.derivation.work import work

        return work(self.program)

    @property
    def flops(self) -> int:
        """Floating-point operations, as the field counts them: two for each term of a sum of
        products, and none where there is no such sum."""
        return self.matmul.flops if self.matmul else self._work.flops

    @property
    def work(self) -> int:
        """The amount of work, for estimates of time and for rates: the :attr:`flops` of a product,
        else all operations, including calls of functions. A program that only moves elements has
        its moves, stage by stage. Never 0.
        """
        if self.matmul:
            return self.flops
        from tilewright.spaces.language.ranges import points_of

        points = (points_of(self.program, stage) for stage in self.program.stages)
        return max(1, self._work.flops + self._work.arithmetic + self._work.special, *points)

    @property
    def least_bytes(self) -> int:
        """Bytes that must move if each input is read once and each output written once; of a table
        that is gathered from, no more than what is read."""
        return self.matmul.least_bytes if self.matmul else self._work.bytes

    @property
    def points(self) -> int:
        """The number of points of all loops together."""
        return prod(self.extents.values())

    @property
    def intense(self) -> bool:
        """Tell whether there are enough operations for each byte that their rate measures a kernel,
        and not the rate of the bytes. Products of any shape are compared by their GFLOP/s.
        """
        return self.matmul is not None or self.flops >= INTENSE * self.least_bytes

    def rate(self, latency: float) -> tuple[float, str]:
        """Compute the rate of a call of ``latency`` seconds, and its unit: GFLOP/s where work is
        :attr:`intense`, the operations of an epilogue not counted, else GB/s that must move.
        """
        if self.intense:
            return self.flops / latency / 1e9, "GFLOP/s"
        return self.least_bytes / latency / 1e9, "GB/s"

    def make_inputs(self, seed: int) -> dict[str, np.ndarray]:
        """Return the inputs by operand name, in each operand's dtype, shape and order, as the
        program says that they are drawn; the same for a seed."""
        if self.matmul:
            return self.matmul.make_inputs(seed)
        from tilewright.spaces.language.inputs import draw

        return dict(self.given(draw(self.program, seed)))


def _word(value: Parameter) -> str:
    """Return a parameter as a word of a command line, quoted if it has blanks."""
    return shlex.quote(str(value))
