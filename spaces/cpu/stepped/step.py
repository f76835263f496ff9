"""The C of one step: the loops of all groups of stages, in order.

An expression is computed where what it is made of is known: once for the lanes of a step, for each
vector of lanes, for each point of inner axes, or for each vector at each such point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.cpu.rows.scopes import VectorScope
from tilewright.spaces.cpu.stepped.places import Places
from tilewright.spaces.cpu.vectors.vector_code import loaded
from tilewright.spaces.derivation.rows.addresses import Steps
from tilewright.spaces.derivation.stepped.view import Group, SteppedView
from tilewright.spaces.kernels.text import C
from tilewright.spaces.language.affine import Affine
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.language.program import Stage
from tilewright.spaces.language.tree import AxisValue, Binary, Expression, Read

STARTS = {"sum": "tw_set(0)", "max": "tw_set(-__builtin_inff())", "min": "tw_set(__builtin_inff())"}
"""The value of a reduction of nothing."""


def constant(value: float) -> str:
    """Return a number, or an infinite one."""
    if abs(value) == float("inf"):
        return "-__builtin_inff()" if value < 0 else "__builtin_inff()"
    return repr(value)


@dataclass
class StepWriter:
    """Writes a step at the indices ``at`` of rows, of the step and of inner axes.

    ``buffers`` maps each array to its C variable. Lanes begin at the index ``first`` of their axis,
    and there are ``limit`` elements of it, None if all lanes have one.
    """

    view: SteppedView
    places: Places
    buffers: Mapping[str, str]
    at: Mapping[str, Index]
    first: Index
    lanes: int
    limit: int | None
    unroll: int
    lines: list[str] = field(default_factory=list)

    def prepared(self) -> list[str]:
        """Return the lines that copy operands before the first step."""
        lines: list[str] = []
        for read in self.view.held:
            body = [
                f"{self.places.held(read, self.at, w)} = {self._loaded(read, w)};"
                for w in range(self.places.vectors)
            ]
            lines += self._nest(self.places.inner_of(read), body, unroll=False)
        return lines

    def write(self) -> list[str]:
        """Return the lines, which read and write the state ``s``."""
        if any(self.view.is_double(name) for name in self.view.first):
            count = "t" if self.view.direction > 0 else "step"
            self.lines += [f"const long odd = {count} % 2, even = 1 - odd;"]
        self._state_without_axes()
        for number, group in enumerate(self.view.groups):
            if group.kept or group.reduced:
                self._loops(number, group)
            else:
                for stage in group.stages:
                    self._value(stage)
        return self.lines

    # -- scopes ------------------------------------------------------------------------------------

    @cached_property
    def _own(self) -> VectorScope:
        scope = self._scope("p", set(), None, self.lines, None)
        scope.magnitudes = magnitudes(self.view.program)
        return scope

    @cached_property
    def _each(self) -> list[VectorScope]:
        return [
            self._scope(f"v{w}_", set(), self._own, self.lines, w)
            for w in range(self.places.vectors)
        ]

    def _scopes_of(self, stage: Stage) -> list[VectorScope]:
        """Return the scopes of a stage without inner axes, one for each of its vectors."""
        return self._each if self.view.lane in stage.axes else [self._own]

    def _scope(
        self,
        prefix: str,
        inner: set[str],
        around: VectorScope | None,
        lines: list[str],
        vector: int | None,
    ) -> VectorScope:
        """Return a scope that knows a point of some ``inner`` axes, and the lanes of a ``vector``:
        what differs along these alone is its own, or along inner axes if lanes are alike."""
        lane = {self.view.lane}
        known, own = (inner, inner) if vector is None else (inner | lane, lane)
        unknown = {*self.view.inner, *lane} - known

        def leaf(node: Expression) -> str | None:
            if not isinstance(node, Read | AxisValue) or not node.axes.isdisjoint(unknown):
                return None
            if around is not None and node.axes.isdisjoint(own):
                return None
            if isinstance(node, AxisValue):
                return self._number(node, vector or 0)
            return self._entry(node, vector or 0)

        return VectorScope(prefix, leaf, lines, around)

    def _number(self, node: AxisValue, w: int) -> str:
        if node.name == self.view.lane:
            return f"tw_numbers(tw_ramp({self.first + w * self.lanes}))"
        return f"tw_set((float){self.at[node.name]})"

    def _entry(self, read: Read, w: int) -> str:
        stage = self.view.stage.get(read.name)
        if stage is None:
            is_held = read in self.view.held
            return self.places.held(read, self.at, w) if is_held else self._loaded(read, w)
        before, inner = self.view.is_before(read), self.view.inner_of(stage.axes)
        if not inner:
            return self._variable(stage, w, before)
        indices = zip(stage.axes, read.indices, strict=True)
        point = {a: self.at[i.name] for a, i in indices if a in inner and isinstance(i, AxisValue)}
        return self.places.at(read.name, point, w, before)

    def _loaded(self, read: Read, w: int) -> str:
        """Return the elements of an operand."""
        steps, kind = self.view.places[read], self.view.program.operand[read.name].dtype
        place, left = self._address(steps, w), self._left(w)
        value = loaded(kind, place, steps.step(self.view.lane), left)
        tests = [f"{self._index(form)} >= 0" for form in self.view.borders.get(read, ())]
        if not tests:
            return value
        return f"({' && '.join(tests)} ? {value} : tw_set({constant(read.outside or 0.0)}))"

    def _index(self, form: Affine) -> Index:
        """Return a sum of axes that are no lanes."""
        total = Index(constant=form.constant)
        for atom, coefficient in form.terms:
            assert isinstance(atom, AxisValue)
            total = total + self.at[atom.name] * coefficient
        return total

    def _variable(self, stage: Stage, w: int, before: bool = False) -> str:
        """Return the variable of a stage without inner axes."""
        number = self.view.stages.index(stage)
        return f"{'o' if before else 'r'}{number}_{w if self.view.lane in stage.axes else 0}"

    def _address(self, steps: Steps, w: int) -> str:
        total = Index(constant=steps.offset)
        at = {**self.at, self.view.lane: self.first + w * self.lanes}
        for axis, step in steps.by_axis.items():
            total = total + (at[axis] * step if axis in at else 0)
        chosen = "".join(f" + {self._entry_of(read)} * {step}" for read, step in steps.gathers)
        return f"{self.buffers[steps.array]} + {total}{chosen}"

    def _entry_of(self, read: Read) -> str:
        """Return an entry of a table, which all lanes have in common."""
        return f"(long)*({self._address(self.view.entries[read], 0)})"

    def _left(self, w: int) -> str | None:
        return None if self.limit is None else f"{self.limit} - ({self.first + w * self.lanes})"

    # -- stages without inner axes -----------------------------------------------------------------

    def _state_without_axes(self) -> None:
        """Load what the state was before, where it is a value for each lane."""
        for name in self.view.first:
            stage = self.view.stage[name]
            if not self.view.inner_of(stage.axes):
                for w in range(self.places.width(stage)):
                    place = self.places.at(name, {}, w, True)
                    self.lines.append(f"const vf {self._variable(stage, w, True)} = {place};")

    def _value(self, stage: Stage) -> None:
        """Write a stage that is a value for each lane, or for all."""
        if self._is_across(stage):
            value = self._across(stage, [scope.text(stage.body) for scope in self._each])
            self.lines.append(f"const vf {self._variable(stage, 0)} = {value};")
            self._finished(stage)
            return
        for w, scope in enumerate(self._scopes_of(stage)):
            value = scope.text(stage.body)
            self.lines.append(f"const vf {self._variable(stage, w)} = {value};")
        self._finished(stage)

    def _is_across(self, stage: Stage) -> bool:
        return self.view.lane in stage.over

    def _across(self, stage: Stage, values: list[str]) -> str:
        """Return all lanes of all vectors reduced to one value, which is in each lane."""
        reducer = stage.reducer or ""
        if self.limit is not None:
            mask, start = f"tw_first({self._left(len(values) - 1)})", STARTS[reducer]
            values = [*values[:-1], f"tw_select({mask}, {values[-1]}, {start})"]
        joined = values[0]
        for value in values[1:]:
            joined = (
                f"{joined} + {value}" if reducer == "sum" else f"tw_{reducer}({joined}, {value})"
            )
        return f"tw_set(tw_across_{reducer}({joined}))"

    def _finished(self, stage: Stage) -> None:
        """Store a stage that is a value for each lane, where it is wanted later."""
        for w in range(self.places.width(stage)):
            value = self._variable(stage, w)
            if stage.name in self.view.first:
                self.lines.append(f"{self.places.at(stage.name, {}, w, False)} = {value};")
            self.lines += self._stores(stage, w, value)

    def _stores(self, stage: Stage, w: int, value: str) -> list[str]:
        """Return the lines that store a vector of an output."""
        found = []
        for output in self.view.outputs:
            if output.name != stage.name:
                continue
            steps = self.view.written(output)
            place, step, left = self._address(steps, w), steps.step(self.view.lane), self._left(w)
            if step != 1:
                count = f"tw_least({left}, TW_LANES)" if left else "TW_LANES"
                count = count if step else "1"
                found.append(f"tw_spread_{output.dtype}({place}, {step}, {value}, {count});")
            elif left:
                found.append(f"tw_store_most_{output.dtype}({place}, {value}, {left});")
            else:
                found.append(f"tw_store_{output.dtype}({place}, {value});")
        return found

    # -- loops over inner axes ---------------------------------------------------------------------

    def _loops(self, number: int, group: Group) -> None:
        """Write the loops of a group, and the values of its reductions."""
        reductions = [s for s in group.stages if s.reducer and not self._is_across(s)]
        if group.kept and group.reduced:
            (stage,) = group.stages
            body = self._begun(stage)
            inner = self._body(number, group)
            body += self._nest(group.reduced, inner, unroll=True)
            for w in range(self.places.width(stage)):
                place = self.places.at(stage.name, self.at, w, False)
                value = self._variable(stage, w)
                body += [f"{place} = {value};", *self._stores(stage, w, value)]
            self.lines += self._nest(group.kept, body, unroll=False)
            return
        for stage in reductions:
            self.lines += self._begun(stage)
        self.lines += self._nest(
            group.kept or group.reduced, self._body(number, group), unroll=True
        )
        for stage in reductions:
            self._finished(stage)

    def _begun(self, stage: Stage) -> list[str]:
        start = STARTS[stage.reducer or ""]
        names = (self._variable(stage, w) for w in range(self.places.width(stage)))
        return [f"vf {name} = {start};" for name in names]

    def _nest(self, axes: Sequence[str], body: list[str], unroll: bool) -> list[str]:
        for place, axis in enumerate(reversed(axes)):
            count = self.unroll if unroll and place == 0 and self.unroll > 1 else None
            extent = self.view.extent(axis)
            body = C.loop(self.at[axis].text, extent, body, unroll=count)
        return body

    def _body(self, number: int, group: Group) -> list[str]:
        """Return what is computed at one point of the inner axes."""
        lines: list[str] = []
        axes = {*group.kept, *group.reduced}
        within = self._scope(f"d{number}_", axes, self._own, lines, None)
        both = [
            self._scope(f"b{number}_{w}_", axes, within, lines, w)
            for w in range(self.places.vectors)
        ]
        for stage in group.stages:
            if self._is_across(stage):
                lines += self._element_across(stage, both)
            elif self.view.lane not in stage.axes:
                lines += self._element(stage, 0, within)
            else:
                for w, scope in enumerate(both):
                    self._hoist(stage.body, scope, self._each[w])
                    lines += self._element(stage, w, scope)
        return lines

    def _element_across(self, stage: Stage, scopes: Sequence[VectorScope]) -> list[str]:
        """Return the lines of an element that all lanes are reduced to."""
        values = []
        for w, scope in enumerate(scopes):
            self._hoist(stage.body, scope, self._each[w])
            values.append(scope.text(stage.body))
        name, place = self._variable(stage, 0), self.places.at(stage.name, self.at, 0, False)
        value = f"const vf {name} = {self._across(stage, values)};"
        return [value, f"{place} = {name};", *self._stores(stage, 0, name)]

    def _hoist(self, node: Expression, scope: VectorScope, around: VectorScope) -> None:
        """Let parts of an expression that no inner axis is in be computed before the loop."""
        for part in self.view.before_inner(node):
            scope.names[part] = around.text(part)

    def _element(self, stage: Stage, w: int, scope: VectorScope) -> list[str]:
        """Return the lines of an element of a map, or of a term of a reduction; what they are made
        of is written by the scope."""
        name = self._variable(stage, w)
        match stage.reducer, stage.body:
            case "sum", Binary("*", left, right):
                return [f"{name} = tw_fma({scope.text(left)}, {scope.text(right)}, {name});"]
            case "sum", body:
                return [f"{name} += {scope.text(body)};"]
            case str(reducer), body:
                return [f"{name} = tw_{reducer}({name}, {scope.text(body)});"]
        value = scope.text(stage.body)
        own = Read(stage.name, tuple(map(AxisValue, stage.axes)))
        scope.names[own] = value
        place = self.places.at(stage.name, self.at, w, False)
        return [f"{place} = {value};", *self._stores(stage, w, value)]
