"""Random programs with inputs at the edges as they are judged: what kernels are given, and what
their outputs may be."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from tests.spaces.edge_inputs import edge_inputs, outcomes, wrong
from tests.spaces.edge_programs import Case
from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.errors import InputError
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.served import names_in_matmul

Arrays = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Judged:
    """A case whose program ``space`` serves."""

    case: Case
    space: Space

    @staticmethod
    def of(case: Case, target: Target) -> Judged | None:
        """The case on a target; None if no template serves its program."""
        text, extents, *_ = case
        try:
            return Judged(case, space_for(workload(text, **extents), target))
        except InputError:
            return None

    def kernels(self, schedules: int) -> dict[Schedule, Kernel]:
        """So many kernels at random, at most."""
        generator = np.random.default_rng(self.case[3])
        rows = np.unique(self.space.sample(generator, schedules), axis=0)
        return {s: self.space.lower(s) for s in map(self.space.schedule, rows)}

    @cached_property
    def given(self) -> Arrays:
        """What kernels are called with."""
        if not self._names:
            return self._inputs
        own = {o.name: self._inputs[self._names.get(o.name, o.name)] for o in self.work.inputs}
        return {o.name: lying_in(own[o.name], o) for o in self.work.inputs}

    def complaint(self, results: Arrays) -> str:
        """What is wrong with a kernel's outputs; nothing if the text is empty."""
        for name, output in zip(self._exact, self.work.outputs, strict=True):
            exact, values = self._exact[name], results[output.name]
            values = lying_as(values, output, exact.shape) if self._names else values
            bad = wrong(values, exact, self._singles(name), *self._bounds[name])
            if bad.any():
                at = tuple(np.argwhere(bad)[0].tolist())
                return f"{bad.sum()} of {name} wrong; at {at} {values[at]} for {exact[at]}"
        return ""

    @property
    def work(self):
        return self.space.workload

    @cached_property
    def _names(self) -> Mapping[str, str]:
        """The program's names of a product's operands."""
        return names_in_matmul(self.work.written) if self.work.matmul else {}

    @cached_property
    def _inputs(self) -> Arrays:
        return edge_inputs(self.work.written, self.case[2], self.case[3])

    @cached_property
    def _exact(self) -> Arrays:
        return evaluate(self.work.written, self._inputs)

    @cached_property
    def _outcomes(self) -> Sequence[Arrays]:
        return outcomes(self.work.written, self._inputs)

    def _singles(self, name: str) -> Sequence[np.ndarray]:
        return [outcome[name] for outcome in self._outcomes]

    @cached_property
    def _bounds(self):
        return allowed(self.work.written, self._inputs)


def lying_in(values: np.ndarray, array: Array) -> np.ndarray:
    """The elements of a dense array as those of another of as many, where memory is the same."""
    ordered = values.reshape([array.shape[d] for d in array.order])
    return ordered.transpose(np.argsort(array.order))


def lying_as(values: np.ndarray, array: Array, shape: tuple[int, ...]) -> np.ndarray:
    """The same the other way round."""
    return values.transpose(array.order).reshape(shape)
