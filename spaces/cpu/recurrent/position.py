"""The C of some positions at once: the state is loaded once for all of them.

An expression is computed where what it is made of is known: once for the lanes of a position, for
each vector of lanes, for each point of the inner axes, or for each vector at each such point.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.cpu.rows.scopes import VectorScope
from tilewright.spaces.cpu.vectors.vector_code import loaded
from tilewright.spaces.derivation.algebra import ONE, ZERO, product
from tilewright.spaces.derivation.recurrent.view import Decay, Recurrence
from tilewright.spaces.derivation.rows.addresses import Steps
from tilewright.spaces.derivation.scopes import Scope
from tilewright.spaces.kernels.text import C
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.language.tree import AxisValue, Expression, Read
from tilewright.spaces.workloads.array import Array

Key = tuple[int, int]
"""A position and a vector, by their numbers."""


@dataclass(frozen=True)
class Scales:
    """C variables of powers: of the state that is ``kept``, of what is ``added``, and of what is
    ``read``; empty if there are none. Each point of ``inner`` axes may have its own."""

    kept: str = ""
    added: str = ""
    read: str = ""
    inner: bool = False

    def within(self, name: str) -> str:
        """Return one of the powers if points of inner axes have their own; else an empty text."""
        found: str = getattr(self, name)
        return found if self.inner else ""

    def outside(self, name: str) -> str:
        """Return one of the powers if all points of inner axes share it; else an empty text."""
        found: str = getattr(self, name)
        return "" if self.inner else found


@dataclass
class Positions:
    """Writes the positions whose indices along the axes are ``at``, one mapping each, in the order
    in which the state passes through them.

    ``buffers`` maps each array to its C variable. There are ``vectors`` of ``lanes`` from the index
    ``first`` of the lane's axis on, and ``limit`` elements of it, None if all lanes have one.
    """

    view: Recurrence
    buffers: Mapping[str, str]
    at: Sequence[Mapping[str, Index]]
    first: Index
    vectors: int
    lanes: int
    limit: int | None
    lines: list[str] = field(default_factory=list)

    def write(self) -> list[str]:
        """Return the lines, which read and write the state ``s`` and its scales ``m``."""
        view = self.view
        own = [self._scope(f"p{u}_", u, set(), None, self.lines) for u in self._positions]
        for scope in own:
            scope.magnitudes = magnitudes(view.program)
        each = {
            (u, w): self._scope(f"v{u}_{w}_", u, {view.lane}, own[u], self.lines, w)
            for u in self._positions
            for w in range(self.vectors)
        }
        body: list[str] = []
        within = [self._scope(f"d{u}_", u, {*view.inner}, own[u], body) for u in self._positions]
        both = {
            (u, w): self._scope(f"b{u}_{w}_", u, {view.lane, *view.inner}, within[u], body, w)
            for u, w in each
        }
        scales = self._scales(own, each, within, both)
        added = {
            key: self._times(scope, view.added, False, scales[key].outside("added"))
            for key, scope in each.items()
        }
        for w in range(self.vectors):
            self._vector(w, body, both, added, scales)
        names = ", ".join(f"y{u}_{w} = tw_set(0)" for u, w in each)
        self.lines.append(f"vf {names};")
        self.lines += self._loops(body)
        for (u, w), scope in each.items():
            self._stores(u, w, scope, scales[u, w].outside("read"))
        return self.lines

    @property
    def _positions(self) -> range:
        return range(len(self.at))

    def _is_inner(self, node: Expression | Decay) -> bool:
        return not node.axes.isdisjoint(self.view.inner)

    # -- scales ------------------------------------------------------------------------------

    def _scales(
        self,
        own: Sequence[Scope],
        each: Mapping[Key, Scope],
        within: Sequence[Scope],
        both: Mapping[Key, Scope],
    ) -> Mapping[Key, Scales]:
        """Write how the scales of the state pass through all positions, where they are known."""
        decay = self.view.decay
        if decay is None:
            return dict.fromkeys(each, Scales())
        if self.view.lane in decay.axes:
            scopes = both if self._is_inner(decay) else each
            order = sorted(scopes, key=lambda key: (key[1], key[0]))
            return {key: self._scaled(decay, scopes[key], key[1]) for key in order}
        same = within if self._is_inner(decay) else own
        found = [self._scaled(decay, scope, None) for scope in same]
        return {(u, w): found[u] for u, w in each}

    def _scaled(self, decay: Decay, scope: Scope, w: int | None) -> Scales:
        """Write how a scale moves at one position, that of the vector ``w`` or of all.

        What rounding makes of the exponent is its value from then on: the state follows by what it
        has moved beside its growth.
        """
        inner, name = self._is_inner(decay), f"{scope.prefix}m"
        place = self._point * (self.vectors if w is not None else 1) if inner else Index()
        number = place + (w or 0)
        last, power = f"m[{number.text}]", f"tw_{decay.function}"
        grows = f" + {scope.text(decay.growth)}" if decay.growth != ZERO else ""
        term, reading = scope.text(decay.term), scope.text(decay.reading)
        read = f"{reading} + {name}0{grows}" if self.view.exclusive else f"{reading} + {name}1"
        scope.lines += [
            f"const vf {name}0 = {last};",
            f"const vf {name}1 = tw_max({name}0{grows}, {term});",
            f"const vf {name}_kept = {power}({name}0 - {name}1{grows});",
            f"const vf {name}_added = {power}({term} - {name}1);",
            f"const vf {name}_read = {power}({read});",
            f"{last} = {name}1;",
        ]
        return Scales(f"{name}_kept", f"{name}_added", f"{name}_read", inner)

    # -- the state ---------------------------------------------------------------------------

    def _vector(
        self,
        w: int,
        lines: list[str],
        scopes: Mapping[Key, Scope],
        added: Mapping[Key, str],
        scales: Mapping[Key, Scales],
    ) -> None:
        """Write how one vector of the state passes through all positions."""
        view, state = self.view, f"z{w}"
        place = f"s[{(self._point * self.vectors + w).text}]"
        lines.append(f"vf {state} = {place};")
        for u in self._positions:
            scope, scale = scopes[u, w], scales[u, w]
            term = self._times(scope, view.added, True, scale.within("added"))
            factor = self._times(scope, view.read, True, scale.within("read"))
            read = f"y{u}_{w} = {_fused(factor, state, f'y{u}_{w}')};"
            lines += [read] if view.exclusive else []
            kept = f"{state} * {scale.kept}" if scale.kept else state
            lines.append(f"{state} = {_fused(term, added[u, w], kept)};")
            lines += [] if view.exclusive else [read]
        lines.append(f"{place} = {state};")

    def _times(self, scope: Scope, found: Iterable[Expression], inner: bool, scale: str) -> str:
        """Return the product of the factors that differ along inner axes, or of the others, and of
        a ``scale``; an empty text for one."""
        value = product(node for node in found if self._is_inner(node) == inner)
        texts = [scope.text(value)] if value != ONE else []
        return " * ".join([*texts, *([scale] if scale else [])])

    @property
    def _point(self) -> Index:
        """The number of the point of the inner axes."""
        place = Index()
        for axis in self.view.inner:
            place = place * self.view.extent(axis) + self.at[0][axis]
        return place

    def _loops(self, body: list[str]) -> list[str]:
        for axis in reversed(self.view.inner):
            body = C.loop(self.at[0][axis].text, self.view.extent(axis), body)
        return body if self.view.inner else C.block(*body)

    def _stores(self, u: int, w: int, scope: Scope, scale: str) -> None:
        factor = self._times(scope, self.view.read, False, scale)
        own = " * ".join([f"y{u}_{w}", *([factor] if factor else [])])
        if self.view.exclusive and u == 0:  # before the first position, there are no terms
            own = f"tw_select(tw_first(t > 0 ? TW_LANES : 0), {own}, tw_set(0))"
        self.lines.append(f"const vf r{u}_{w} = {own};")
        for output in self.view.outputs:
            value = scope.text(self.view.values[output.name])
            steps = self.view.written(output)
            self.lines.append(self._store(output, steps, u, w, value))

    def _store(self, array: Array, steps: Steps, u: int, w: int, value: str) -> str:
        place, step, left = self._address(steps, u, w), steps.step(self.view.lane), self._left(w)
        if step != 1:
            count = f"tw_least({left}, TW_LANES)" if left else "TW_LANES"
            return f"tw_spread_{array.dtype}({place}, {step}, {value}, {count});"
        if left:
            return f"tw_store_most_{array.dtype}({place}, {value}, {left});"
        return f"tw_store_{array.dtype}({place}, {value});"

    def _scope(
        self,
        prefix: str,
        u: int,
        axes: set[str],
        around: Scope | None,
        lines: list[str],
        w: int = 0,
    ) -> VectorScope:
        """Return a scope that knows these axes beside those of the position ``u``."""
        unknown = {*self.view.inner, self.view.lane} - axes

        def leaf(node: Expression) -> str | None:
            if not isinstance(node, Read | AxisValue) or not node.axes.isdisjoint(unknown):
                return None
            if around is not None and node.axes.isdisjoint(axes) and not self._is_sum(node):
                return None
            if self._is_sum(node):
                return f"r{u}_{w}" if self.view.lane in axes else None
            return (
                self._number(node, u, w) if isinstance(node, AxisValue) else self._load(node, u, w)
            )

        return VectorScope(prefix, leaf, lines, around)

    def _is_sum(self, node: Expression) -> bool:
        return isinstance(node, Read) and node.name == self.view.name

    def _number(self, node: AxisValue, u: int, w: int) -> str:
        if node.name == self.view.lane:
            return f"tw_numbers(tw_ramp({self._lane(w)}))"
        return f"tw_set((float){self.at[u][node.name]})"

    def _load(self, read: Expression, u: int, w: int) -> str:
        assert isinstance(read, Read)
        steps, kind = self.view.places[read], self.view.program.operand[read.name].dtype
        step = steps.step(self.view.lane)
        return loaded(kind, self._address(steps, u, w), step, self._left(w))

    def _address(self, steps: Steps, u: int, w: int) -> str:
        total = Index(constant=steps.offset)
        at = {**self.at[u], self.view.lane: self._lane(w)}
        for axis, step in steps.by_axis.items():
            total = total + (at[axis] * step if axis in at else 0)
        return f"{self.buffers[steps.array]} + {total}"

    def _lane(self, w: int) -> Index:
        return self.first + w * self.lanes

    def _left(self, w: int) -> str | None:
        return None if self.limit is None else f"{self.limit} - {self._lane(w)}"


def _fused(factor: str, times: str, plus: str) -> str:
    """Return a product plus something; either factor may be an empty text, for one."""
    if factor and times:
        return f"tw_fma({factor}, {times}, {plus})"
    return f"{plus} + {factor or times or 'tw_set(1)'}"
