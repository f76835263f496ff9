"""The C of some positions at once: the state is loaded once for all of them.

An expression is computed where what it is made of is known: once for the lanes of a position, for
each vector of lanes, for each point of the inner axes, or for each vector at each such point.
Powers that lanes share and points of inner axes do not are computed ahead, in vectors of points.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.spaces.algebra.index import Index, variable
from tilewright.spaces.algebra.integers import ceil_div
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


@dataclass(frozen=True)
class Lanes:
    """The lanes of a vector: elements along an ``axis`` from the index ``first`` on, of which
    ``left`` are there; all if that is None."""

    axis: str
    first: Index
    left: str | None


@dataclass
class Positions:
    """Writes the positions whose indices along the axes are ``at``, one mapping each, in the order
    in which the state passes through them.

    ``buffers`` maps each array to its C variable. There are ``vectors`` of ``lanes`` from the index
    ``first`` of the lane's axis on, and ``limit`` elements of it, None if all lanes have one.
    Powers that are computed ahead are in the dtype ``element``.
    """

    view: Recurrence
    buffers: Mapping[str, str]
    at: Sequence[Mapping[str, Index]]
    first: Index
    vectors: int
    lanes: int
    limit: int | None
    element: str
    lines: list[str] = field(default_factory=list)

    def write(self) -> list[str]:
        """Return the lines, which read and write the state ``s``, its scales ``m``, and powers
        ``h`` that are computed ahead."""
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
            place = self._point * self.vectors if self._is_inner(decay) else Index()
            return {key: self._scaled(decay, scopes[key], place + key[1]) for key in order}
        if is_ahead(self.view):
            self._ahead(decay, own)
            found = [self._found(scope, u) for u, scope in enumerate(within)]
        else:
            found = [self._scaled(decay, scope, Index()) for scope in own]
        return {(u, w): found[u] for u, w in each}

    def _ahead(self, decay: Decay, own: Sequence[Scope]) -> None:
        """Write the powers of all points of the inner axes, in vectors of points."""
        view, first = self.view, variable("c")
        axis, extent = view.inner[-1], view.extent(view.inner[-1])
        lanes = Lanes(axis, first, f"{extent} - c" if extent % self.lanes else None)
        lines: list[str] = []
        place = self._row * ceil_div(extent, self.lanes) + first // self.lanes
        for u in self._positions:
            scope = self._scope(f"a{u}_", u, {*view.inner}, own[u], lines, lanes)
            scales = self._scaled(decay, scope, place)
            lines += [
                f"tw_store_{self.element}(h + {self._power(u, n, first)}, {name});"
                for n, name in enumerate((scales.kept, scales.added, scales.read))
            ]
        lines = C.loop("c", extent, lines, step=self.lanes)
        for other in reversed(view.inner[:-1]):
            lines = C.loop(self.at[0][other].text, view.extent(other), lines)
        self.lines += lines

    def _found(self, scope: Scope, u: int) -> Scales:
        """Read the powers of a point, which were computed ahead."""
        point = self.at[0][self.view.inner[-1]]
        names = [f"{scope.prefix}m_{power}" for power in ("kept", "added", "read")]
        scope.lines += [
            f"const vf {name} = tw_splat_{self.element}(h + {self._power(u, n, point)});"
            for n, name in enumerate(names)
        ]
        kept, added, read = names
        return Scales(kept, added, read, inner=True)

    def _power(self, u: int, number: int, point: Index) -> Index:
        """Return the place of a power of a point of the last inner axis."""
        row = ceil_div(self.view.extent(self.view.inner[-1]), self.lanes) * self.lanes
        rows = self.view.extent(*self.view.inner[:-1])
        return (self._row + rows * (3 * u + number)) * row + point

    def _scaled(self, decay: Decay, scope: Scope, number: Index) -> Scales:
        """Write how a scale, which has a ``number``, moves at one position.

        What rounding makes of the exponent is its value from then on: the state follows by what it
        has moved beside its growth.
        """
        inner, name = self._is_inner(decay), f"{scope.prefix}m"
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
        return self._number_of(self.view.inner)

    @property
    def _row(self) -> Index:
        """The number of the point of the inner axes but the last."""
        return self._number_of(self.view.inner[:-1])

    def _number_of(self, axes: Sequence[str]) -> Index:
        place = Index()
        for axis in axes:
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
        lanes = self._lanes(w)
        place, step, left = self._address(steps, u, lanes), steps.step(lanes.axis), lanes.left
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
        at: int | Lanes = 0,
    ) -> VectorScope:
        """Return a scope that knows these axes beside those of the position ``u``, of the vector
        that has a number, or of other lanes."""
        w, lanes = (0, at) if isinstance(at, Lanes) else (at, self._lanes(at))
        unknown = {*self.view.inner, self.view.lane} - axes

        def leaf(node: Expression) -> str | None:
            if not isinstance(node, Read | AxisValue) or not node.axes.isdisjoint(unknown):
                return None
            if around is not None and node.axes.isdisjoint(axes) and not self._is_sum(node):
                return None
            if self._is_sum(node):
                return f"r{u}_{w}" if self.view.lane in axes else None
            return (
                self._number(node, u, lanes)
                if isinstance(node, AxisValue)
                else self._load(node, u, lanes)
            )

        return VectorScope(prefix, leaf, lines, around)

    def _is_sum(self, node: Expression) -> bool:
        return isinstance(node, Read) and node.name == self.view.name

    def _number(self, node: AxisValue, u: int, lanes: Lanes) -> str:
        if node.name == lanes.axis:
            return f"tw_numbers(tw_ramp({lanes.first}))"
        return f"tw_set((float){self.at[u][node.name]})"

    def _load(self, read: Expression, u: int, lanes: Lanes) -> str:
        assert isinstance(read, Read)
        steps, kind = self.view.places[read], self.view.program.operand[read.name].dtype
        step = steps.step(lanes.axis)
        return loaded(kind, self._address(steps, u, lanes), step, lanes.left)

    def _address(self, steps: Steps, u: int, lanes: Lanes) -> str:
        total = Index(constant=steps.offset)
        at = {**self.at[u], lanes.axis: lanes.first}
        for axis, step in steps.by_axis.items():
            total = total + (at[axis] * step if axis in at else 0)
        return f"{self.buffers[steps.array]} + {total}"

    def _lanes(self, w: int) -> Lanes:
        first = self.first + w * self.lanes
        left = None if self.limit is None else f"{self.limit} - {first}"
        return Lanes(self.view.lane, first, left)


def is_ahead(view: Recurrence) -> bool:
    """Tell whether powers are computed ahead: each point of inner axes has its own for all
    lanes."""
    axes = frozenset[str]() if view.decay is None else view.decay.axes
    return view.lane not in axes and not axes.isdisjoint(view.inner)


def _fused(factor: str, times: str, plus: str) -> str:
    """Return a product plus something; either factor may be an empty text, for one."""
    if factor and times:
        return f"tw_fma({factor}, {times}, {plus})"
    return f"{plus} + {factor or times or 'tw_set(1)'}"
