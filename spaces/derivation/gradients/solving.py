"""Indices solved for axes: which points of a stage read the entry ``t`` of an array.

``x[2 * p + r - 1]`` reads entry ``t`` where ``p == (t - r + 1) // 2``, if that divides evenly and
``p`` is an axis' value. Each index of a read binds one axis to an expression of ``t`` and of the
axes that remain:

    i                    i = t
    h // 4               h = 4 t + u, for each u below 4
    (i + 64) % 128       i = (t - 64) % 128, where i has 128 values
    i % 32               i = 32 u + t, for each u
    8 * i + j            i = t // 8, j = t % 8, where j has 8 values
    h // 4 * 8 + j       j = t % 8, h = 4 (t // 8) + u, for each u below 4
    2 * p + r - 1        the longest axis, p = (t - r + 1) // 2, where nothing remains
    table[e] + 1         no axis: the elements where it equals t
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.derivation.algebra import ONE, ZERO, minus, number, plus, times
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.affine import Affine, affine
from tilewright.spaces.language.tree import AxisValue, Binary, Comparison, Expression, Number

Fresh = Callable[[str, int], str]
"""Makes a new axis from the name of an old one, of some extent."""


@dataclass
class Solution:
    """Axes ``bound`` to what they are, new axes that remain to be summed over, and conditions.

    ``tests`` are to hold for the axes that remain, ``tables`` likewise, of entries of tables. A
    bound axis is within its extent unless it is in ``unsure``.
    """

    extents: Mapping[str, int]
    free: Sequence[str]
    fresh: Fresh
    bound: dict[str, Expression] = field(default_factory=dict)
    added: list[str] = field(default_factory=list)
    tests: list[Comparison] = field(default_factory=list)
    tables: list[Comparison] = field(default_factory=list)
    unsure: set[str] = field(default_factory=set)

    @property
    def remaining(self) -> list[str]:
        """The axes that are bound to nothing, new ones included."""
        return [axis for axis in (*self.free, *self.added) if axis not in self.bound]

    def solve(self, index: Expression, entry: AxisValue, extent: int) -> None:
        """Bind an axis such that ``index == entry``, which is an axis of some ``extent``."""
        index = self._simple(self.at(index))
        if not (self._plain(index, entry, extent) or self._by_division(index, entry, extent)):
            self._by_terms(index, entry, extent)

    def at(self, node: Expression) -> Expression:
        """Return an expression with all bound axes replaced."""
        return at(node, self.bound)

    def bind(self, axis: str, value: Expression, sure: bool) -> None:
        """Bind an axis, also where it occurs in what others are bound to."""
        self.bound = {name: at(each, {axis: value}) for name, each in self.bound.items()}
        self.tests = [_condition_at(each, {axis: value}) for each in self.tests]
        self.tables = [_condition_at(each, {axis: value}) for each in self.tables]
        self.bound[axis] = value
        if not sure:
            self.unsure.add(axis)

    def _is_open(self, axis: str) -> bool:
        return axis in self.remaining

    def _plain(self, index: Expression, entry: AxisValue, extent: int) -> bool:
        match index:
            case AxisValue(axis) if self._is_open(axis):
                self.bind(axis, entry, extent <= self.extents[axis])
                return True
        return False

    def _by_division(self, index: Expression, entry: AxisValue, extent: int) -> bool:
        """Solve quotients and remainders of an axis, or of an axis and a number."""
        match index:
            case Binary("//" | "%" as operator, inner, Number(by)):
                divisor, form = int(by), affine(inner)
            case _:
                return False
        match form.terms:
            case [(AxisValue(axis), 1)] if self._is_open(axis):
                solve = self._quotient if operator == "//" else self._remainder
                solve(axis, form.constant, divisor, entry, extent)
                return True
        return False

    def _quotient(
        self, axis: str, constant: int, divisor: int, entry: Expression, extent: int
    ) -> None:
        inside = self._new(axis, divisor)
        value = plus(plus(times(_number(divisor), entry), inside), _number(-constant))
        self.bind(axis, value, not constant and divisor * extent <= self.extents[axis])

    def _remainder(
        self, axis: str, constant: int, divisor: int, entry: AxisValue, extent: int
    ) -> None:
        constant, whole = constant % divisor, self.extents[axis]
        if extent > divisor:
            self.tests.append(Comparison("<", entry, _number(divisor)))
        if whole == divisor and not constant:
            self.bind(axis, entry, extent <= divisor)
        elif whole == divisor:
            turned = plus(entry, _number(divisor - constant))
            self.bind(axis, Binary("%", turned, _number(divisor)), True)
        else:
            rounds = -(-(whole + constant) // divisor)
            outside = self._new(axis, rounds)
            value = plus(times(_number(divisor), outside), plus(entry, _number(-constant)))
            self.bind(axis, value, not constant and whole == divisor * rounds)

    def _new(self, axis: str, extent: int) -> Expression:
        name = self.fresh(axis, extent)
        self.added.append(name)
        return AxisValue(name)

    def _by_terms(self, index: Expression, entry: AxisValue, extent: int) -> None:
        """Solve a sum of multiples for one of its axes, or for all; or keep it as a condition."""
        try:
            form = affine(index)
        except InputError:
            self.tests.append(Comparison("==", index, entry))
            return
        if any(atom.reads for atom, _ in form.terms):
            self.tables.append(Comparison("==", index, entry))
            return
        if self._by_digits(form, entry, extent):
            return
        inside = _inside_others(form)
        own = [
            (atom.name, c)
            for atom, c in form.terms
            if isinstance(atom, AxisValue) and self._is_open(atom.name) and atom.name not in inside
        ]
        if not own:
            self.tests.append(Comparison("==", index, entry))
        else:
            name, c = max(own, key=lambda term: self.extents[term[0]])
            others = [(atom, k) for atom, k in form.terms if atom != AxisValue(name)]
            self._eliminate(name, c, _less(entry, others, form.constant))

    def _by_digits(self, form: Affine, entry: AxisValue, extent: int) -> bool:
        """Bind axes, or quotients of them, that are the digits of a number, each with its own
        base."""
        step = 1
        digits = sorted(form.terms, key=lambda term: term[1])
        axes = [axis for atom, _ in digits for axis in atom.axes]
        if len(digits) < 2 or len({*axes}) < len(axes):
            return False
        for atom, c in digits:
            size = self._size(atom, form)
            if c != step or size is None:
                return False
            step *= size
        place = minus(entry, _number(form.constant))
        for atom, c in digits[:-1]:
            size = self._size(atom, form)
            assert size is not None
            value = place if c == 1 else Binary("//", place, _number(c))
            self._bind_digit(atom, Binary("%", value, _number(size)), size, True)
        atom, c = digits[-1]
        sure = not form.constant and extent <= step
        self._bind_digit(atom, Binary("//", place, _number(c)), ceil_div(extent, c), sure)
        return True

    def _size(self, atom: Expression, form: Affine) -> int | None:
        """Return the values that a digit has, an open axis or a quotient of one; None if it is
        neither."""
        match atom:
            case AxisValue(axis) if self._is_open(axis):
                return self.extents[axis]
            case Binary("//", AxisValue(axis), Number(by)) if self._is_open(axis):
                return None if form.constant else ceil_div(self.extents[axis], int(by))
        return None

    def _bind_digit(self, atom: Expression, value: Expression, extent: int, sure: bool) -> None:
        match atom:
            case AxisValue(axis):
                self.bind(axis, value, sure)
            case Binary("//", AxisValue(axis), Number(by)):
                self._quotient(axis, 0, int(by), value, extent)

    def _eliminate(self, axis: str, c: int, rest: Expression) -> None:
        """Bind an axis by ``c * axis == rest``."""
        rest = rest if c > 0 else minus(ZERO, rest)
        if abs(c) > 1:
            divisor = _number(abs(c))
            self.tests.append(Comparison("==", Binary("%", rest, divisor), ZERO))
            rest = Binary("//", rest, divisor)
        self.bind(axis, rest, False)

    def _simple(self, node: Expression) -> Expression:
        """Return an index with no quotient or remainder of digits that are known apart."""
        children = tuple(map(self._simple, node.children))
        found = node if children == node.children else node.with_children(children)
        match found:
            case Binary("//" | "%" as operator, inner, Number(by)) if not inner.reads:
                form, divisor = affine(inner), int(by)
            case _:
                return found
        high = [(atom, c // divisor) for atom, c in form.terms if c % divisor == 0]
        low = [(atom, c) for atom, c in form.terms if c % divisor]
        plain = all(isinstance(atom, AxisValue) and c > 0 for atom, c in low)
        most = sum(c * (self.extents[str(atom)] - 1) for atom, c in low) if plain else divisor
        if not high or not 0 <= form.constant <= most + form.constant < divisor:
            return found
        return _written(high, 0) if operator == "//" else _written(low, form.constant)


def at(node: Expression, bound: Mapping[str, Expression]) -> Expression:
    """Return an expression with some axes replaced."""
    return node.at({axis: bound.get(axis, AxisValue(axis)) for axis in node.axes})


def _condition_at(condition: Comparison, bound: Mapping[str, Expression]) -> Comparison:
    found = at(condition, bound)
    assert isinstance(found, Comparison)
    return found


def _inside_others(form: Affine) -> set[str]:
    """Return the axes within the quotients and remainders of a sum."""
    return {a for atom, _ in form.terms if not isinstance(atom, AxisValue) for a in atom.axes}


def _less(value: Expression, terms: Sequence[tuple[Expression, int]], constant: int) -> Expression:
    """Return a value without some terms."""
    for atom, c in (*terms, (ONE, constant)):
        term = times(_number(abs(c)), atom)
        value = minus(value, term) if c > 0 else plus(value, term)
    return value


def _written(terms: Sequence[tuple[Expression, int]], constant: int) -> Expression:
    total = _number(constant)
    for atom, c in terms:
        total = plus(total, times(_number(c), atom))
    return total


def _number(value: int) -> Expression:
    return number(float(value))
