"""Reverse mode: what each array adds to the derivative of the outputs, from the last stage to the
first (Griewank and Walther, Evaluating Derivatives, 2008, chapter 3).

A stage ``s[axes] = sum[over](body)`` that reads an array adds to its derivative, at the entry that
it reads, ``ds[axes]`` times the derivative of the body in the read. Turned around, entry ``t`` is
the sum of this over all points at which it is read: :mod:`.solving` says which these are. What
bounds the stage bounds this sum as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilewright.spaces.derivation.algebra import (
    ONE,
    ZERO,
    factors,
    number,
    over,
    plus,
    product,
    times,
)
from tilewright.spaces.derivation.gradients.carrying import Carried
from tilewright.spaces.derivation.gradients.means import is_mean
from tilewright.spaces.derivation.gradients.partial import folded, partial, with_products
from tilewright.spaces.derivation.gradients.solving import Solution, at
from tilewright.spaces.derivation.gradients.totals import quotient, total
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.bounds import Bounds
from tilewright.spaces.language.cycles import cycles, in_states
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.reading.inference import entry_ranges
from tilewright.spaces.language.tree import (
    AxisValue,
    Binary,
    Call,
    Comparison,
    Expression,
    Number,
    Read,
    Select,
)

Conditions = frozenset[Comparison]
MOST_REPEATED = 12
"""Nodes of a derivative that its readers compute each for themselves."""


@dataclass(frozen=True)
class Term:
    """``outer * sum[over: domain](inner)``, which is there where all of ``guard`` hold, and 0
    elsewhere."""

    outer: Expression
    over: tuple[str, ...]
    inner: Expression
    domain: tuple[Comparison, ...]
    guard: Conditions


WITH_POLES = ("log", "rsqrt", "pow")
"""Functions that are infinite at 0."""
NOTHING = Term(ZERO, (), ONE, (), frozenset())
"""Flows into a state that later steps do not depend on."""


@dataclass
class Reverse:
    """Derivatives of what a program computes, as stages beside its own.

    ``wanted`` are the operands to differentiate by, ``seeded`` the outputs whose derivatives are
    given, ``flat`` the stages that nothing flows back through, ``carried`` the maps by which cycles
    read their states. ``stages`` and ``domains`` are those of the derivatives, ``extents`` all
    axes.
    """

    program: Program
    wanted: Sequence[str]
    seeded: Mapping[str, str]
    flat: Collection[str]
    carried: Sequence[Carried] = ()
    extents: dict[str, int] = field(init=False)
    stages: list[Stage] = field(default_factory=list)
    domains: dict[str, tuple[Comparison, ...]] = field(default_factory=dict)
    _terms: dict[str, list[Term]] = field(default_factory=dict)
    _axes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _reserved: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.extents = dict(self.program.extents)
        self._entries = entry_ranges(self.program)
        self._active = _active(self.program, self.wanted) - set(self.flat)
        self._known = {
            stage.body: Read(stage.name, tuple(map(AxisValue, stage.axes)))
            for stage in self.program.stages
            if stage.reducer is None and not isinstance(stage.body, Number | Read | AxisValue)
        }

    def run(self) -> dict[str, str]:
        """Differentiate, and return the stage of each operand's derivative."""
        for output, seed in self.seeded.items():
            if output in self._active:
                own = self.program.stage[output].axes
                read = Read(seed, tuple(map(AxisValue, own)))
                term = Term(read, (), ONE, (), frozenset())
                self._terms.setdefault(output, []).append(term)
        for stage in reversed(self.program.stages):
            self._begin_cycle(stage)
            if stage.name in self._reserved:
                self._end_cycle(stage)
            elif stage.name in self._active and stage.name in self._terms:
                derivative, guard = self._closed(stage.name, stage.axes)
                self._back(stage, derivative, guard)
        return {name: self._result(name) for name in self.wanted}

    # -- the steps of a cycle ---------------------------------------------------------------------

    def _begin_cycle(self, last: Stage) -> None:
        """Let what flows out of each step of a cycle flow into the states of the step before, if
        anything flows into the cycle, whose ``last`` stage this is."""
        for cycle in cycles(self.program):
            if cycle.stages[-1] == last.name and not self._terms.keys().isdisjoint(cycle.stages):
                for each in self.carried:
                    if each.state.name in cycle.stages and each.before.name in self._active:
                        name = self._unused(f"d{each.before.name}")
                        self._reserved[each.before.name] = name
                        term = Term(each.entry(name), (), ONE, (), frozenset())
                        self._terms.setdefault(each.state.name, []).append(term)

    def _end_cycle(self, before: Stage) -> None:
        """Add the derivative of a state as it was before a step, of which others have read."""
        name = self._reserved.pop(before.name)
        terms = [_guarded(term) for term in self._terms.get(before.name, [NOTHING])]
        added = self._added(name, before.axes, terms, again=False)
        assert added.name == name

    # -- the derivative of an array ---------------------------------------------------------------

    def _result(self, name: str) -> str:
        """Add the stage of an operand's derivative, which is there everywhere."""
        if name not in self._terms:
            problem = f"no output has a derivative in {name}"
            raise InputError(f"{problem}; allowed: operands whose values outputs depend on")
        axes = self._target(name)
        terms = [_guarded(term) for term in self._terms[name]]
        return self._added(f"d{name}", axes, terms, again=False).name

    def _closed(self, name: str, axes: tuple[str, ...]) -> tuple[Expression, Conditions]:
        """Return the derivative of a stage as an entry, and where it is there."""
        terms = self._terms[name]
        guards = {term.guard for term in terms}
        guard = guards.pop() if len(guards) == 1 else frozenset()
        if guards:
            terms = [_guarded(term) for term in terms]
        if len(terms) == 1 and _is_short(terms[0]):
            return self._value(f"d{name}", axes, terms[0]), guard
        added = self._added(f"d{name}", axes, terms)
        return Read(added.name, tuple(map(AxisValue, axes))), guard

    def _added(
        self, name: str, axes: tuple[str, ...], terms: Sequence[Term], again: bool = True
    ) -> Stage:
        """Add a stage that is the sum of some terms; one that is there already serves ``again``."""
        match terms:
            case [Term(outer, (_, *_) as reduced, inner, domain)] if outer == ONE:
                own = Stage(self._unused(name), axes, "sum", reduced, inner)
                return self._append(own, domain, again)
        values = [self._value(name, axes, term) for term in terms]
        return self._append(Stage(self._unused(name), axes, None, (), total(values)), ())

    def _value(self, name: str, axes: tuple[str, ...], term: Term) -> Expression:
        """Return a term as an expression; its sum becomes a stage."""
        if not term.over:
            return times(term.outer, term.inner)
        named = term.inner.axes.union(*(c.axes for c in term.domain))
        kept = tuple(axis for axis in axes if axis in named)
        own = Stage(self._unused(f"{name}_sum"), kept, "sum", term.over, term.inner)
        added = self._append(own, term.domain)
        return times(term.outer, Read(added.name, tuple(map(AxisValue, kept))))

    def _append(self, stage: Stage, domain: tuple[Comparison, ...], again: bool = True) -> Stage:
        """Add a stage; or return an equal sum, if one that is there serves ``again``."""
        for each in self.stages if again and stage.reducer else ():
            equal = replace(each, name=stage.name) == stage
            if equal and {*self.domains.get(each.name, ())} == {*domain}:
                return each
        self.stages.append(stage)
        if domain:
            self.domains[stage.name] = domain
        return stage

    # -- one step back ----------------------------------------------------------------------------

    def _back(self, stage: Stage, derivative: Expression, guard: Conditions) -> None:
        """Add what a stage gives to the derivatives of the arrays that it reads."""
        bounding = guard | frozenset(self.program.bounding(stage))
        for read in dict.fromkeys(stage.body.value_reads):
            if read.name in self._active:
                flowing = self._flowing(stage, derivative, read)
                if flowing != ZERO:
                    term = self._term(stage, read, flowing, bounding)
                    if not self._cancels(term):
                        self._terms.setdefault(read.name, []).append(term)

    def _cancels(self, term: Term) -> bool:
        """Tell whether a term sums up the distances of elements from their mean, which add up to
        0."""
        match term.inner:
            case Binary("-", element, mean) if term.over and not term.domain:
                return is_mean(self.program, mean, element, term.over)
        return False

    def _flowing(self, stage: Stage, derivative: Expression, read: Read) -> Expression:
        """Return what flows from a point of a stage to one of its reads."""
        slope = folded(partial(stage.body, read), self._known)
        if slope == ZERO:
            return ZERO
        match stage.reducer:
            case None | "sum":
                return with_products(times(derivative, slope), self._known)
            case "max" | "min":
                reached = Select(self._reached(stage), slope, ZERO)
                return times(over(derivative, self._count(stage)), reached)
            case "prod":
                return times(times(derivative, self._others(stage)), slope)
        raise InputError(
            f"{stage.reducer} has no gradient here; allowed: sum, max, min and maps on the way "
            f"from {read.name}"
        )

    def _reached(self, stage: Stage) -> Comparison:
        """Return the condition that a point has the greatest or least value."""
        return Comparison("==", stage.body, Read(stage.name, tuple(map(AxisValue, stage.axes))))

    def _count(self, stage: Stage) -> Expression:
        """Return how many points have that value: they share the derivative."""
        body = Select(self._reached(stage), ONE, ZERO)
        own = Stage(self._unused(f"{stage.name}_ties"), stage.axes, "sum", stage.over, body)
        added = self._append(own, self.program.bounding(stage))
        return Read(added.name, tuple(map(AxisValue, stage.axes)))

    def _others(self, stage: Stage) -> Expression:
        """Return the product of all other elements: none is divided by, for it may be 0."""
        names = {axis: AxisValue(self._fresh(axis, self.extents[axis])) for axis in stage.over}
        flat: Expression = ZERO
        for axis in stage.over:
            flat = plus(times(number(float(self.extents[axis])), flat), AxisValue(axis))
        apart = Comparison("!=", at(flat, names), flat)
        bounding = (_condition(c, names) for c in self.program.bounding(stage))
        axes = (*stage.axes, *stage.over)
        name = self._unused(f"{stage.name}_others")
        others = tuple(other.name for other in names.values())
        own = Stage(name, axes, "prod", others, at(stage.body, names))
        added = self._append(own, (*bounding, apart))
        return Read(added.name, tuple(map(AxisValue, axes)))

    def _term(self, stage: Stage, read: Read, flowing: Expression, bounding: Conditions) -> Term:
        """Return what a read adds to the derivative of its array, by that array's own axes."""
        target = self._target(read.name)
        free = [*stage.axes, *(axis for axis in stage.over if axis not in stage.axes)]
        named = {
            axis: AxisValue(self._fresh(axis, self.extents[axis]))
            for axis in free
            if axis in target and read.indices[target.index(axis)] != AxisValue(axis)
        }
        free = [named[axis].name if axis in named else axis for axis in free]
        solution = Solution(self.extents, free, self._fresh)
        for index, axis in zip(read.indices, target, strict=True):
            solution.solve(at(index, named), AxisValue(axis), self.extents[axis])
        bounding = frozenset(_condition(c, named) for c in bounding)
        bounding = self._determined(solution, bounding)
        return self._solved(solution, at(flowing, named), bounding)

    def _determined(self, solution: Solution, bounding: Conditions) -> Conditions:
        """Bind axes that remain to the entries that conditions say they are equal to, and return
        the other conditions."""
        others = set(bounding)
        bounds = Bounds.under((), self.extents, self._entries)
        for condition in sorted(bounding, key=str):
            for axis, value in _equal(condition):
                value = solution.at(value)
                readable = all(read.name in self._entries for read in value.reads)
                if axis in solution.remaining and axis not in value.axes and readable:
                    low, high = bounds.of(value)
                    if low >= 0 and high < self.extents[axis]:
                        solution.bind(axis, value, True)
                        others.discard(condition)
                        break
        return frozenset(_condition(c, solution.bound) for c in others)

    def _solved(self, solution: Solution, flowing: Expression, bounding: Conditions) -> Term:
        """Return the sum of what flows over the axes that remain."""
        reduced = tuple(solution.remaining)
        domain = [c for c in solution.tables if not c.axes.isdisjoint(reduced)]
        tests = [*solution.tests, *(c for c in solution.tables if c not in domain)]
        value = self._within(solution, flowing, tests)
        found = factors(value) if reduced else (value,)
        outer = quotient(f for f in found if f.axes.isdisjoint(reduced) or not reduced)
        inner = quotient(f for f in found if not f.axes.isdisjoint(reduced))
        for test in reversed(tests):
            if test.axes.isdisjoint(reduced):
                outer = Select(test, outer, ZERO)
            if not test.axes.isdisjoint(reduced) or _may_be_infinite(inner):
                inner = Select(test, inner, ZERO)
        known = sorted(bounding, key=str)
        domain += [c for c in known if not c.axes.isdisjoint(reduced) and c not in domain]
        guard = frozenset(c for c in known if c.axes.isdisjoint(reduced))
        return Term(outer, reduced, inner, tuple(domain), guard)

    def _within(
        self, solution: Solution, flowing: Expression, tests: list[Comparison]
    ) -> Expression:
        """Return what flows with all axes replaced, as 0 where a bound axis leaves its extent: by
        reads that are 0 there, or else by ``tests``."""
        parts = list(factors(flowing))
        for axis in sorted(solution.unsure):
            readers = [n for n, part in enumerate(parts) if axis in part.axes]
            if all(self._is_entry(parts[n], axis) for n in readers) and any(
                self._ends_with(parts[n], axis) for n in readers
            ):
                for n in readers:
                    part = parts[n]
                    assert isinstance(part, Read)
                    parts[n] = Read(part.name, part.indices, 0.0)
            else:
                value = solution.bound[axis]
                tests += [
                    Comparison("<=", ZERO, value),
                    Comparison("<", value, number(float(self.extents[axis]))),
                ]
                parts = [_inside(part, axis) for part in parts]
        return at(product(parts), solution.bound)

    @staticmethod
    def _is_entry(part: Expression, axis: str) -> bool:
        """Tell whether a factor is an entry at an axis that may be 0 beyond the borders."""
        return (
            isinstance(part, Read)
            and part.outside in (None, 0.0)
            and all(index == AxisValue(axis) or axis not in index.axes for index in part.indices)
        )

    def _ends_with(self, part: Expression, axis: str) -> bool:
        """Tell whether an array ends where an axis does."""
        assert isinstance(part, Read)
        shape = self._shape(part.name)
        pairs = zip(part.indices, shape, strict=True)
        return any(i == AxisValue(axis) and extent == self.extents[axis] for i, extent in pairs)

    # -- names ------------------------------------------------------------------------------------

    def _shape(self, name: str) -> tuple[int, ...]:
        if name in self.program.operand:
            return self.program.operand[name].shape
        seeds = {seed: output for output, seed in self.seeded.items()}
        stages = {**self.program.stage, **{stage.name: stage for stage in self.stages}}
        stages |= {own: self.program.stage[name] for name, own in self._reserved.items()}
        return tuple(self.extents[axis] for axis in stages[seeds.get(name, name)].axes)

    def _target(self, name: str) -> tuple[str, ...]:
        """Return the axes of an array's derivative: a stage's own, or the one axis by which an
        operand's dimension is read, and else new ones."""
        if name in self.program.stage:
            return self.program.stage[name].axes
        if name not in self._axes:
            reads = [r for s in self.program.stages for r in s.body.value_reads if r.name == name]
            axes: list[str] = []
            for place, extent in enumerate(self.program.operand[name].shape):
                found = {
                    str(i) for read in reads if isinstance(i := read.indices[place], AxisValue)
                }
                one = found.pop() if len(found) == 1 else ""
                fits = self.program.extent.get(one) == extent and one not in axes
                axes.append(one if fits else self._fresh(f"{name}{place}", extent))
            self._axes[name] = tuple(axes)
        return self._axes[name]

    def _fresh(self, stem: str, extent: int) -> str:
        name = self._unused(stem)
        self.extents[name] = extent
        return name

    def _unused(self, stem: str) -> str:
        """Return a name that nothing has yet."""
        taken = {*self.program.stage, *self.program.operand, *self.extents}
        taken |= {*self.seeded.values(), *(stage.name for stage in self.stages)}
        taken |= {*self._reserved.values()}
        numbered = (f"{stem}_{count}" for count in range(2, len(taken) + 3))
        return stem if stem not in taken else next(name for name in numbered if name not in taken)


def _active(program: Program, wanted: Collection[str]) -> set[str]:
    """Return the arrays that change where the ``wanted`` ones do."""
    active = set(wanted)
    for _ in range(1 + len(in_states(program))):  # for each state may reach another one
        for stage in program.stages:
            reads = any(read.name in active for read in stage.body.value_reads)
            if reads and stage.reducer not in ("argmax", "argmin"):
                active.add(stage.name)
    return active


def _is_short(term: Term) -> bool:
    """Return whether readers may compute a term themselves: a product of a few factors, beside a
    sum that is a stage."""
    nodes = sum(1 for _ in term.outer.values()) + (0 if term.over else len([*term.inner.values()]))
    return nodes <= MOST_REPEATED and (term.outer != ONE or not term.over)


def _may_be_infinite(node: Expression) -> bool:
    """Tell whether a value may be no number where reads beyond borders are 0."""
    return any(
        any(read.outside is not None for read in divisor.value_reads)
        for divisor in map(_divisor, node.values())
    )


def _divisor(node: Expression) -> Expression:
    """Return what may not be 0, of which a value is computed; 1 if there is nothing."""
    match node:
        case Binary("/", _, right):
            return right
        case Call(function, (first, *_)) if function in WITH_POLES:
            return first
    return ONE


def _guarded(term: Term) -> Term:
    """Return a term that is 0 where its conditions do not hold."""
    outer = term.outer
    for condition in sorted(term.guard, key=str):
        outer = Select(condition, outer, ZERO)
    return Term(outer, term.over, term.inner, term.domain, frozenset())


def _condition(condition: Comparison, named: Mapping[str, Expression]) -> Comparison:
    found = at(condition, named)
    assert isinstance(found, Comparison)
    return found


def _equal(condition: Comparison) -> Iterator[tuple[str, Expression]]:
    """Yield the axes that a condition gives a value."""
    if condition.operator == "==":
        for side, other in ((condition.left, condition.right), (condition.right, condition.left)):
            if isinstance(side, AxisValue):
                yield side.name, other


def _inside(node: Expression, axis: str) -> Expression:
    """Return an expression whose reads at an axis are 0 beyond the borders."""
    children = tuple(_inside(child, axis) for child in node.children)
    node = node if children == node.children else node.with_children(children)
    if isinstance(node, Read) and node.outside is None and axis in node.axes:
        return Read(node.name, node.indices, 0.0)
    return node
