"""A workload that computes any program; products of matrices are contractions instead."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tilewright.spaces.derivation.work import Work, work
from tilewright.spaces.language.inputs import draw
from tilewright.spaces.language.program import Output, Program
from tilewright.spaces.language.ranges import points_of
from tilewright.spaces.language.tree import Read
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.workload import Parameter, Workload

PROGRAM = "program"
"""The operator of a program without a name. Its parameter ``text`` is the program as it was
written, in one line."""
HALVES = ("float16", "bfloat16")
"""Dtypes of 16 bits in which packed codes are multiplied."""


@dataclass(frozen=True, eq=False, repr=False)
class Computation(Workload):
    """A program to be tuned.

    Its identity is what the program means: two that differ in names and writing alone are equal,
    whatever ``operator`` and ``parameters`` they were made from. ``obstacle`` says why it is no
    product of matrices, in words. ``program`` has no constants; ``source`` has those of the
    program that it was made from, whose gradient is simpler.
    """

    operator: str
    parameters: tuple[tuple[str, Parameter], ...]
    program: Program
    obstacle: str
    source: Program | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Computation) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def asked(self) -> Program:
        """The program with its constants."""
        return self.source or self.program

    @property
    def key(self) -> str:
        """The digest of the program's canonical text."""
        return f"{PROGRAM} {self.program.digest}"

    def __str__(self) -> str:
        words = dict(self.parameters)
        if self.operator == PROGRAM:
            text = words.pop("text", "; ".join(self._lines))
            first = f'"{text}"'
        else:
            first = self.operator
        return " ".join([first, *(f"{name}={_word(value)}" for name, value in words.items())])

    @property
    def _lines(self) -> list[str]:
        return self.program.text.split("\n")

    def to_json(self) -> dict[str, Any]:
        """Return ``{"operator": ..., "parameters": {...}, "program": [...]}``: its lines say
        all."""
        return {
            "operator": self.operator,
            "parameters": dict(self.parameters),
            "program": self._lines,
        }

    @property
    def words(self) -> Mapping[str, Parameter]:
        """The stages, and the dtypes of all arrays."""
        stages = "\n".join(map(str, (*self.program.conditions, *self.program.stages)))
        arrays = (*self.program.operands, *self.program.outputs)
        return {"stages": stages} | {array.name: array.dtype for array in arrays}

    @property
    def extents(self) -> Mapping[str, int]:
        """Axis name to extent."""
        return self.program.extent

    @cached_property
    def inputs(self) -> tuple[Array, ...]:
        """The program's operands as they lie in memory."""
        return tuple(operand.stored for operand in self.program.operands)

    @cached_property
    def coded(self) -> tuple[Array, ...]:
        """The operands whose elements are packed codes."""
        return tuple(operand for operand in self.program.operands if operand.coded)

    def given(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Return inputs of a problem as kernels take them: elements that are codes packed."""
        known = self.program.operand
        return {name: known[name].given(array) for name, array in inputs.items()}

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The program's outputs."""
        return self.program.outputs

    @property
    def accumulator(self) -> str:  # type: ignore[override]
        """float64 if any array is, else float32."""
        return self.program.computed_in

    @cached_property
    def arithmetic(self) -> tuple[str, ...]:
        """The dtypes of the factors of products; without products the accumulator's, because values
        are widened as they are loaded. So are packed codes, unless they meet floats of 16 bits.
        """
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

        product = coded_product_of(self.program)
        if isinstance(product, str) or not isinstance(product.activation, Read):
            return self.accumulator
        own = self.program.operand[product.activation.name].dtype
        return own if own in HALVES else self.accumulator

    @cached_property
    def functions(self) -> Collection[str]:
        """The functions that any stage calls."""
        return self.program.functions

    @property
    def formula(self) -> str:
        """The lines of the stages."""
        return "; ".join(map(str, (*self.program.conditions, *self.program.stages)))

    @cached_property
    def _work(self) -> Work:
        return work(self.program)

    @property
    def flops(self) -> int:
        """Two for each term of a sum of products, and none where there is no such sum."""
        return self._work.flops

    @property
    def work(self) -> int:
        """All operations, including calls of functions; for a program that only moves elements, its
        moves, stage by stage.
        """
        points = (points_of(self.program, stage) for stage in self.program.stages)
        return max(1, self._work.flops + self._work.arithmetic + self._work.special, *points)

    @property
    def least_bytes(self) -> int:
        """Bytes that must move; of a table that is gathered from, no more than what is read."""
        return self._work.bytes

    def make_inputs(self, seed: int) -> dict[str, np.ndarray]:
        """Return the inputs as the program says that they are drawn; the same for a seed."""
        return dict(self.given(draw(self.program, seed)))


def _word(value: Parameter) -> str:
    """Return a parameter as a word of a command line, quoted if it has blanks."""
    return shlex.quote(str(value))
