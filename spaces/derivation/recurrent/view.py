"""A sum over a prefix whose terms separate, as a state that is carried from position to position.

    y[h, t, e] = sum[s: s <= t](exp(u(t) + v(s)) * sum[d](q[t, d] * k[s, d]) * x[s, e])

The state ``z`` has the axes that terms are made of, ``d`` and ``e``, and is read by what is of the
position alone. So that no power is too large, all terms are scaled by the largest one so far:

    m(t) = max(m(t - 1), v(t))
    z(t)[d, e] = exp(m(t - 1) - m(t)) * z(t - 1)[d, e] + exp(v(t) - m(t)) * k[t, d] * x[t, e]
    y(t)[e] = exp(u(t) + m(t)) * sum[d](q[t, d] * z(t)[d, e])

Linear attention, retention, state-space models and gated linear attention are of this form: work is
linear in the number of positions (Katharopoulos et al., Transformers are RNNs, ICML 2020; Dao and
Gu, Transformers are SSMs, ICML 2024). What separates is found by
``spaces.derivation.chains.separation``, as for corrections of softmax.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod

from tilewright.spaces.derivation.algebra import (
    ZERO,
    factors,
    negated,
    number,
    plus,
    product,
)
from tilewright.spaces.derivation.chains.separation import Separation, Term, UnderivableError
from tilewright.spaces.derivation.inlining import inlined
from tilewright.spaces.derivation.recurrent.steps import added_up, growth_of, parts_of
from tilewright.spaces.derivation.rows.addresses import Steps, steps_of_output, steps_of_read
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.prefixes import Prefix, compared, prefix_of
from tilewright.spaces.language.program import Output, Program, Stage
from tilewright.spaces.language.tree import AxisValue, Expression, Number, Read


@dataclass(frozen=True)
class Decay:
    """Powers of ``function`` that terms have, beside the largest one so far.

    From one position to the next, that grows by ``growth``, and then it is ``term`` at least, the
    exponent of what is added. The exponent of what is read is ``reading`` beside it. The growth of
    running ``sums`` is what they add up; other kernels take differences of the sums themselves.
    """

    function: str
    growth: Expression
    term: Expression
    reading: Expression
    sums: tuple[Expression, ...] = ()

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The exponents that kernels compute."""
        return (self.growth, self.term, self.reading)

    @property
    def axes(self) -> frozenset[str]:
        """The axes that they depend on."""
        return frozenset().union(*(node.axes for node in self.expressions))


@dataclass(frozen=True)
class Recurrence:
    """A state that is carried along ``position``, forwards or ``backwards``.

    At each position, the product of ``added`` is added to the state; terms have a ``decay``, or
    None. The sum over ``inner`` axes of the state times all ``read`` factors is the
    stage ``name``, of which ``values`` of the outputs are made; if it is ``exclusive``, the state
    is read before its own term is added. Lanes run along the axis ``lane``, and the ``rows`` are
    independent of each other. Expressions read operands at ``places``.
    """

    program: Program
    name: str
    rows: tuple[str, ...]
    position: str
    inner: tuple[str, ...]
    lane: str
    backwards: bool
    exclusive: bool
    decay: Decay | None
    added: tuple[Expression, ...]
    read: tuple[Expression, ...]
    values: Mapping[str, Expression]

    def extent(self, *axes: str) -> int:
        """Return the number of points of some axes."""
        return prod(self.program.extent[axis] for axis in axes)

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The outputs."""
        return self.program.outputs

    @property
    def others(self) -> tuple[Stage, ...]:
        """The stages that are computed beside the state, without those that it stands for: sums
        within terms, and what has a value for each pair of positions."""
        within = self.program.stage[self.name].over
        return tuple(
            stage
            for stage in self.program.stages
            if stage.name != self.name
            and (not stage.reducer or prefix_of(self.program, stage))
            and set(within).isdisjoint(stage.axes)
        )

    @property
    def merged(self) -> tuple[Stage, ...]:
        """The sums within terms, whose axes are inner ones of the state."""
        return tuple(
            stage
            for stage in self.program.stages
            if stage.reducer and stage.name != self.name and stage not in self.others
        )

    @property
    def expressions(self) -> Iterator[Expression]:
        """All expressions that kernels compute."""
        yield from (*self.added, *self.read, *self.values.values())
        if self.decay is not None:
            yield from self.decay.expressions

    @cached_property
    def places(self) -> Mapping[Read, Steps]:
        """The place of each read of an operand."""
        reads = (r for e in self.expressions for r in e.value_reads if r.name != self.name)
        return {read: self._place(read) for read in dict.fromkeys(reads)}

    def written(self, output: Output) -> Steps:
        """Return the place where an output is written."""
        return steps_of_output(output, self.program.stage[output.name].axes)

    def _place(self, read: Read) -> Steps:
        operand = self.program.operand.get(read.name)
        if operand is None:
            raise InputError(f"{read} is computed, and not carried along {self.position}")
        found = steps_of_read(operand, read)
        if found.gathers:
            raise InputError(f"entries of a table choose {read}")
        return found


def recurrence_of(program: Program) -> Recurrence:
    """Return the program as a recurrence; :class:`InputError` says why it is none."""
    stage, prefix = _summed(program)
    body, inner = _merged(program, stage, prefix)
    term = _term(body, prefix)
    here = {axis: AxisValue(axis) for axis in program.extent}
    here[prefix.term] = AxisValue(prefix.row)
    kept = [axis for axis in stage.axes if axis != prefix.row and program.extent[axis] > 1]
    if not kept:
        raise InputError(f"{stage.name} has no axis beside {prefix.row} for lanes")
    lane = _lane(program, stage, kept)

    def plain(node: Expression) -> Expression:
        return _plain(program, inlined(program, node, lambda _: True))

    found = Recurrence(
        program,
        stage.name,
        tuple(axis for axis in kept if axis != lane),
        prefix.row,
        tuple(axis for axis in inner if program.extent[axis] > 1),
        lane,
        prefix.backwards,
        prefix.exclusive,
        _decay(program, prefix, term, here, plain) if term.function else None,
        tuple(map(plain, (number(term.number), *factors(term.c.at(here))))),
        tuple(map(plain, factors(term.q))),
        {o.name: plain(_value(program, stage, o.name)) for o in program.outputs},
    )
    assert found.places is not None  # which raises if there are none
    return found


@lru_cache(maxsize=256)
def cached_recurrence(program: Program) -> Recurrence | None:
    """Return the program as a recurrence, derived once; None if it is none."""
    try:
        return recurrence_of(program)
    except InputError:
        return None


def carried(program: Program) -> str | None:
    """Return the name of the sum that a state is carried for; None if the program is no
    recurrence."""
    found = cached_recurrence(program)
    return None if found is None else found.name


def _decay(
    program: Program,
    prefix: Prefix,
    term: Term,
    here: Mapping[str, Expression],
    plain: Callable[[Expression], Expression],
) -> Decay | None:
    """Return the powers of terms; None if all are one.

    What grows by something that is known without cancelling is taken to the position, where it may
    be large beside its growth; the rest stays with the terms and with what is read.
    """
    assert term.function is not None
    own, other = (parts_of(program, prefix, node) for node in (term.u, term.v.at(here)))
    growth = added_up(*(growth_of(program, prefix, part) or ZERO for part in own.growing))
    whole = plus(added_up(*own.growing, *other.growing), other.rest)
    if growth == whole == own.rest == ZERO:
        return None
    parts = dict.fromkeys((*own.growing, *(negated(part) for part in other.growing)))
    sums = tuple(part for part in map(plain, parts) if _reads_stages(program, part))
    return Decay(term.function, plain(growth), plain(whole), plain(own.rest), sums)


def _reads_stages(program: Program, node: Expression) -> bool:
    return any(read.name in program.stage for read in node.value_reads)


def _summed(program: Program) -> tuple[Stage, Prefix]:
    """Return the stage that all outputs are made of, and its prefixes."""
    read = {r.name for output in program.outputs for r in _reduced(program, output.name)}
    if len(read) != 1:
        raise InputError("outputs are not all made of one sum over prefixes")
    stage = program.stage[read.pop()]
    prefix = compared(program, stage)
    if prefix is None:
        raise InputError(f"{stage.name} is no sum over prefixes")
    if prefix_of(program, stage):
        raise InputError(f"the terms of {stage.name} are alike for all {prefix.row}: it is a scan")
    row, term = (program.extent[axis] for axis in (prefix.row, prefix.term))
    if row != term or row == 1:
        raise InputError(f"{stage.name} has {row} prefixes of {term} terms; allowed: as many")
    return stage, prefix


def _reduced(program: Program, name: str) -> Iterator[Read]:
    """Yield the reads of reductions that the value of an output is made of."""
    value = _value(program, None, name)
    for read in inlined(program, value, lambda _: True).value_reads:
        if read.name in program.stage:
            yield read


def _value(program: Program, stage: Stage | None, name: str) -> Expression:
    """Return the value of an output, in which the sum is read at its own point; refuse another."""
    output = program.stage[name]
    own = Read(name, tuple(map(AxisValue, output.axes)))
    value = own if output.reducer else output.body
    if stage is not None:
        state = Read(stage.name, tuple(map(AxisValue, stage.axes)))
        if set(output.axes) != set(stage.axes):
            raise InputError(f"{name} has other axes than {stage.name}")
        for read in inlined(program, value, lambda _: True).value_reads:
            if read.name == stage.name and read != state:
                raise InputError(f"{read} is the sum of another point")
    return value


def _merged(program: Program, stage: Stage, prefix: Prefix) -> tuple[Expression, list[str]]:
    """Return what is summed, and over which axes beside that of the terms: sums within a product
    are over theirs, too, for the order of sums does not matter."""
    inner = [axis for axis in stage.over if axis != prefix.term]
    merged: list[Expression] = []
    for factor in factors(inlined(program, stage.body, lambda _: True)):
        found = program.stage.get(factor.name) if isinstance(factor, Read) else None
        if found is None or found.reducer != "sum" or prefix.term in found.over:
            merged.append(factor)
            continue
        if program.bounding(found) or not {*inner, *stage.axes}.isdisjoint(found.over):
            raise InputError(f"{found.name} is summed over a part, or over axes of {stage.name}")
        assert isinstance(factor, Read)
        inner += found.over
        places = dict(zip(found.axes, factor.indices, strict=True))
        merged.append(found.body.at({**places, **{a: AxisValue(a) for a in found.over}}))
    return product(merged), inner


def _term(body: Expression, prefix: Prefix) -> Term:
    """Take what is summed apart into what is of the position and what is of the term."""
    try:
        terms = Separation(
            varies=lambda node: prefix.term in node.axes,
            depends=lambda node: prefix.row in node.axes,
        ).terms(body)
    except UnderivableError as reason:
        raise InputError(f"its terms do not separate: {reason}") from None
    if len(terms) != 1 or terms[0].conditions:
        raise InputError(f"{len(terms)} terms would need a state each; allowed: one, always there")
    return terms[0]


def _lane(program: Program, stage: Stage, kept: list[str]) -> str:
    """Return the axis that the first output is contiguous along; else the longest one."""
    output = program.outputs[0]
    steps = steps_of_output(output, program.stage[output.name].axes)
    return max(kept, key=lambda axis: (steps.step(axis) == 1, program.extent[axis]))


def _plain(program: Program, node: Expression) -> Expression:
    """Return an expression in which axes of one point are 0."""
    if isinstance(node, AxisValue) and program.extent.get(node.name) == 1:
        return Number(0.0)
    return node.with_children(tuple(_plain(program, child) for child in node.children))
