"""Products whose conditions are in one of their factors, which is 0 where they do not hold.

``sum[j](p[i, j] * v[j])`` where ``j <= i`` is a product of matrices without a condition when
``select(j <= i, p[i, j], 0)`` is an array. Kernels of products compute it then, hidden terms too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilewright.spaces.derivation.algebra import ZERO, factors, product
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import AxisValue, Comparison, Expression, Read, Select


def hidden_in_factors(program: Program) -> Program | None:
    """Return the program without conditions, if each sum that they bound has a factor that is
    computed and knows all of their axes; None of others."""
    hiding = _Hiding(program)
    for stage in program.stages:
        conditions = program.bounding(stage)
        if not conditions:
            hiding.stages.append(stage)
        elif stage.reducer != "sum" or not hiding.hide(stage, conditions):
            return None
    return replace(program, stages=tuple(hiding.stages), conditions=())


def _at(condition: Comparison, names: Mapping[str, AxisValue]) -> Comparison:
    found = condition.at(names)
    assert isinstance(found, Comparison)
    return found


@dataclass
class _Hiding:
    program: Program
    stages: list[Stage] = field(default_factory=list)

    def hide(self, stage: Stage, conditions: Sequence[Comparison]) -> bool:
        """Add a sum with its conditions in one factor; tell whether that is possible."""
        parts = list(factors(stage.body))
        axes = frozenset[str]().union(*(condition.axes for condition in conditions))
        places = [n for n, part in enumerate(parts) if self._is_computed(part, axes)]
        if not places:
            return False
        place = min(places, key=lambda n: len(parts[n].axes))
        parts[place] = self._hidden(stage, parts[place], conditions)
        self.stages.append(replace(stage, body=product(parts)))
        return True

    def _is_computed(self, part: Expression, axes: frozenset[str]) -> bool:
        is_operand = isinstance(part, Read) and part.name in self.program.operand
        return axes <= part.axes and bool(part.value_reads) and not is_operand

    def _hidden(
        self, stage: Stage, part: Expression, conditions: Sequence[Comparison]
    ) -> Expression:
        """Return a read of the map that hides a factor; equal ones are one. An entry of a stage is
        hidden by that stage's own axes."""
        indices: tuple[Expression, ...] = ()
        names: tuple[str, ...] = ()
        if isinstance(part, Read) and part.outside is None:
            names = self.program.stage[part.name].axes
            own = {str(i): AxisValue(name) for name, i in zip(names, part.indices, strict=True)}
            named = frozenset[str]().union(*(condition.axes for condition in conditions))
            if named <= own.keys():
                indices, conditions = part.indices, [_at(each, own) for each in conditions]
                part = Read(part.name, tuple(map(AxisValue, names)))
        body = part
        for condition in reversed(conditions):
            body = Select(condition, body, ZERO)
        known = next((s for s in self.stages if s.reducer is None and s.body == body), None)
        if known is None:
            axes = tuple(axis for axis in (*stage.axes, *stage.over) if axis in body.axes)
            axes = names if indices else axes
            known = Stage(self._unused(f"{stage.name}_shown"), axes, None, (), body)
            self.stages.append(known)
        return Read(known.name, indices or tuple(map(AxisValue, known.axes)))

    def _unused(self, stem: str) -> str:
        taken = {*self.program.stage, *self.program.operand, *self.program.extent}
        taken |= {stage.name for stage in self.stages}
        numbered = (f"{stem}{number}" for number in range(2, len(taken) + 3))
        return stem if stem not in taken else next(name for name in numbered if name not in taken)
