"""The division of a program into kernels of the least predicted cost.

Which stages become arrays is chosen one at a time: from all of them on, the choice that makes the
whole cheaper by most is made as long as there is one. Then kernels that write several arrays take
the place of those that write one each, where that is cheaper. Beside that, all outputs may be of
one kernel, which computes again whatever is larger than the program's arrays. A kernel's cost is
the larger of two times: for the bytes that it must move, and for its operations, both counted as
bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import prod

from tilewright.spaces.derivation.cutting import BETWEEN
from tilewright.spaces.derivation.dividing import (
    part_of,
    possible_arrays,
    with_factors,
    without_maps,
)
from tilewright.spaces.derivation.hiding import hidden_in_factors
from tilewright.spaces.derivation.work import Work, work
from tilewright.spaces.language.cycles import computed_of
from tilewright.spaces.language.program import Program
from tilewright.spaces.staged.partition import Part, Serving, at_once
from tilewright.spaces.template import Template

MOST = 12
"""Kernels that a program may be divided into."""
MOST_ARRAYS = 12
"""Stages that may become arrays; programs of more are not divided in this way."""


WORTH = 0.9
"""The most that a division may cost, in the cost of the first cut, to be tried beside it."""


@dataclass(frozen=True)
class Costs:
    """The bytes that a machine moves in the time of one operation of a product, of another
    operation, of a call of a function such as ``exp``, and of starting a kernel. A product that is
    not multiplied in tiles takes ``apart`` times as long as one that is."""

    flop: float
    arithmetic: float
    call: float
    start: float
    apart: float = 4

    def of(self, program: Program, recomputes: bool) -> float:
        """Return the predicted cost of a kernel. One that ``recomputes`` what it multiplies loads
        both factors for each term."""
        counted = work(without_maps(program) if recomputes else program)
        flops = counted.flops * (self.apart if recomputes else 1)
        return self.start + max(float(counted.bytes), self._operations(counted, flops))

    def of_work(self, program: Program) -> float:
        """Return the predicted cost of a program's bytes and operations, one after the other: it
        falls with each of them, whichever takes longer."""
        counted = work(program)
        return counted.bytes + self._operations(counted, counted.flops)

    def _operations(self, counted: Work, flops: float) -> float:
        operations = self.flop * flops + self.arithmetic * counted.arithmetic
        return operations + self.call * counted.special

    def of_parts(self, parts: Sequence[Part]) -> float:
        """Return the predicted cost of kernels that run one after the other."""
        return sum(self.of(part.program, part.template.recomputes) for part in parts)


ON_CPU = Costs(flop=0.1, arithmetic=0.2, call=2.0, start=1e4)
"""Zen 4, one thread: some 100 GFLOP/s of products, and 10 GB/s."""
ON_GPU = Costs(flop=0.01, arithmetic=0.1, call=1.0, start=1.2e7, apart=40)
"""An H200: some 400 TFLOP/s of products by tensor cores, 4 TB/s, and 3 us until a kernel runs."""
UNSERVED = 1e13
"""The cost of a kernel that no template serves."""
Kernels = tuple[tuple[str, ...], ...]
"""The arrays that each kernel writes."""


Parts = tuple[Part, ...] | str
"""The kernels of a part, more than one if it has phases; or why there is none."""


def divided(
    program: Program, serving: Serving, spare: type[Template], costs: Costs
) -> tuple[Part, ...] | str:
    """Return the parts of the cheapest division of a program of several outputs that is found, or
    why there is none. Phases that add nothing up may have the ``spare`` template."""
    if len(program.outputs) < 2:
        return "it has one output; the first cut is tried alone"
    if program.computed_in != BETWEEN:
        return f"it computes in {program.computed_in}; needs {BETWEEN}"
    whole = with_factors(hidden_in_factors(program) or program)
    possible = possible_arrays(whole)
    if len(possible) > MOST_ARRAYS:
        return f"{len(possible)} stages may be arrays; allowed: {MOST_ARRAYS}"
    found = _Division(whole, serving, spare, costs).best(possible)
    together = _Division(program, serving, spare, costs).together(possible_arrays(program))
    if isinstance(together, str):
        return found
    if isinstance(found, str) or costs.of_parts(together) < costs.of_parts(found):
        return together
    return found


def cheaper(
    first: tuple[Part, ...] | str, found: tuple[Part, ...] | str, costs: Costs
) -> tuple[Part, ...] | str:
    """Return the division that was ``found``, if it is predicted to be cheaper than the ``first``
    cut; or why it is none."""
    if isinstance(first, str) or isinstance(found, str):
        return found
    is_worth_it = costs.of_parts(found) < WORTH * costs.of_parts(first)
    return found if is_worth_it else "the first cut is about as cheap"


@dataclass
class _Division:
    program: Program
    serving: Serving
    spare: type[Template]
    costs: Costs
    _parts: dict[tuple[frozenset[str], frozenset[str]], tuple[float, Parts]] = field(
        default_factory=dict
    )

    def best(self, possible: Sequence[str]) -> Parts:
        """Return the parts of a division, from one on where all that is ``possible`` is an
        array."""
        arrays = self._improved(possible)
        return self._found(self._joined(self._single(arrays), arrays), arrays)

    def together(self, possible: Sequence[str]) -> Parts:
        """Return the parts where all outputs are of one kernel, and the arrays before it are what
        is ``possible`` and no larger than the program's own arrays."""
        largest = max(a.size for a in (*self.program.operands, *self.program.outputs))
        axes = {name: self.program.stage[name].axes for name in possible}
        outputs = tuple(output.name for output in self.program.outputs)
        small = (n for n in possible if prod(self.program.shape(axes[n])) <= largest)
        arrays = frozenset(small) - set(outputs)
        single = [names for names in self._single(arrays) if names[0] not in outputs]
        return self._found(self._joined((*single, outputs), arrays), arrays)

    def _found(self, kernels: Kernels, arrays: frozenset[str]) -> Parts:
        found: list[Part] = []
        for names in kernels:
            _, parts = self._part(names, arrays)
            if isinstance(parts, str):
                return parts
            found += parts
        return tuple(found) if len(kernels) <= MOST else f"{len(kernels)} kernels; allowed: {MOST}"

    def _improved(self, possible: Sequence[str]) -> frozenset[str]:
        """Return the arrays that remain where no single change makes the whole cheaper."""
        arrays = frozenset(possible)
        least = self._cost(self._single(arrays), arrays)
        while True:
            changes = [arrays ^ {name} for name in possible]
            priced = [(self._cost(self._single(each), each), n) for n, each in enumerate(changes)]
            cost, place = min(priced, default=(least, 0))
            if cost >= least:
                return arrays
            least, arrays = cost, changes[place]

    def _joined(self, kernels: Kernels, arrays: frozenset[str]) -> Kernels:
        """Return fewer kernels, as long as joining two makes the whole cheaper."""
        least = self._cost(kernels, arrays)
        while True:
            found = [(self._cost(each, arrays), each) for each in self._pairs(kernels, arrays)]
            cost, joined = min(found, default=(least, kernels))
            if cost >= least:
                return kernels
            least, kernels = cost, joined

    def _pairs(self, kernels: Kernels, arrays: frozenset[str]) -> Iterator[Kernels]:
        """Yield the kernels with any two joined, of which none between waits for the first."""
        reads = [self._reads(names, arrays) for names in kernels]
        for first, second in combinations(range(len(kernels)), 2):
            waits = any(not reads[n].isdisjoint(kernels[first]) for n in range(first + 1, second))
            if not waits:
                rest = [names for n, names in enumerate(kernels) if n not in (first, second)]
                joined = (*kernels[first], *kernels[second])
                yield (*rest[: second - 1], joined, *rest[second - 1 :])

    def _reads(self, names: Sequence[str], arrays: frozenset[str]) -> set[str]:
        return {operand.name for operand in part_of(self.program, names, arrays).operands}

    def _single(self, arrays: frozenset[str]) -> Kernels:
        """Return a kernel for each array and each output that is needed, in an order in which each
        reads what was written before."""
        needed = {output.name for output in self.program.outputs}
        waiting = [*needed]
        while waiting:
            new = (self._reads([waiting.pop()], arrays) & arrays) - needed
            needed |= new
            waiting += new
        return tuple((stage.name,) for stage in self.program.stages if stage.name in needed)

    def _cost(self, kernels: Kernels, arrays: frozenset[str]) -> float:
        return sum(self._part(names, arrays)[0] for names in kernels)

    def _part(self, names: Sequence[str], arrays: frozenset[str]) -> tuple[float, Parts]:
        """Return the cost of a kernel, and its parts if templates serve it."""
        key = frozenset(names), arrays & computed_of(self.program.stages, names)
        if key not in self._parts:
            self._parts[key] = self._priced(part_of(self.program, names, arrays))
        return self._parts[key]

    def _priced(self, program: Program) -> tuple[float, Parts]:
        parts = at_once(program, self.serving, self.spare)
        if isinstance(parts, str):
            return UNSERVED + self.costs.of(program, recomputes=True), parts
        recomputes = any(part.template.recomputes for part in parts)
        return self.costs.of(program, recomputes), parts
