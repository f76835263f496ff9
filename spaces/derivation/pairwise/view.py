"""A program as products of rows and keys, and sums of what their pairs give, along both.

    score[batch, row, key] = sum[depth](left[batch, row, depth] * right[batch, key, depth])
    scalar[batch, row]     = sum[term](...)              or one of each key, of operands alone
    t[batch, row, width]   = sum[key](w(scores, scalars) * matrix[batch, key, width])
    u[batch, key, width]   = sum[row](w(scores, scalars) * matrix[batch, row, width])

The gradient of attention is such a program: one visit of each pair gives its scores once and adds
to all sums, and no score is ever an array. Heads that share keys are rows of one product, however
a sum over them names their group and their place in it (:mod:`.naming`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.derivation.algebra import factors, product
from tilewright.spaces.derivation.chained.bounds import bounding_indices
from tilewright.spaces.derivation.chained.rows_and_keys import RowsAndKeys
from tilewright.spaces.derivation.chained.view import ChainedOutput
from tilewright.spaces.derivation.dividing import without_maps
from tilewright.spaces.derivation.pairwise.naming import Named, named_alike
from tilewright.spaces.derivation.products.addresses import Address, address_of
from tilewright.spaces.derivation.products.roles import roles_of
from tilewright.spaces.derivation.products.splitting import Indexing, Part, indexing, whole_axes
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import AxisValue, Comparison, Expression, Read

LONGEST = 4096
"""Terms of a scalar, which one accumulator of each lane adds up."""


@dataclass(frozen=True)
class Score:
    """A number for each pair: the product of a row and of a key along ``depth``."""

    read: Read
    left: Expression
    right: Expression
    depth: Part


@dataclass(frozen=True)
class Scalar:
    """A number for each row, or for each key if ``of_key``: the sum of ``body`` along ``term``."""

    read: Read
    body: Expression
    term: Part
    of_key: bool


@dataclass(frozen=True)
class PairSum:
    """The sum of ``weight`` times the row of ``matrix`` along the keys, for each row; or along the
    rows, for each key, if ``of_key``."""

    weight: Expression
    matrix: Expression
    width: Part
    output: ChainedOutput
    of_key: bool


@dataclass(frozen=True)
class Pairwise(RowsAndKeys):
    """A program so. Weights read scores and scalars as :attr:`Score.read` and :attr:`Scalar.read`
    do."""

    scores: tuple[Score, ...]
    scalars: tuple[Scalar, ...]
    sums: tuple[PairSum, ...]

    @cached_property
    def weights(self) -> tuple[Expression, ...]:
        """All weights, each once."""
        return tuple(dict.fromkeys(each.weight for each in self.sums))

    @cached_property
    def row_matrices(self) -> tuple[tuple[Expression, Part], ...]:
        """The expressions of a row along an axis of its own, each once, with that axis."""
        found = [(score.left, score.depth) for score in self.scores]
        return tuple(dict.fromkeys([*found, *self._matrices(of_key=True)]))

    @cached_property
    def key_matrices(self) -> tuple[tuple[Expression, Part], ...]:
        """The same of a key."""
        found = [(score.right, score.depth) for score in self.scores]
        return tuple(dict.fromkeys([*found, *self._matrices(of_key=False)]))

    @property
    def expressions(self) -> Iterator[Expression]:
        """All expressions that kernels compute."""
        yield from self.conditions
        yield from (matrix for matrix, _ in (*self.row_matrices, *self.key_matrices))
        yield from (scalar.body for scalar in self.scalars)
        yield from self.weights

    @property
    def offsets(self) -> tuple[Index, ...]:
        """The places of outputs."""
        return tuple(each.output.offset for each in self.sums)

    @property
    def is_bounded(self) -> bool:
        """Tell whether some pairs do not count."""
        return bool(self.bounds or self.conditions)

    def _matrices(self, of_key: bool) -> Iterator[tuple[Expression, Part]]:
        return ((each.matrix, each.width) for each in self.sums if each.of_key == of_key)


@lru_cache(maxsize=64)
def pairwise_of(program: Program) -> Pairwise | str:
    """The program so, or why it is none, in words."""
    try:
        return _Reader(without_maps(program)).pairwise()
    except InputError as reason:
        return str(reason)


class _Reader:
    """Finds the parts of a program, and refuses what one visit of each pair cannot give."""

    def __init__(self, program: Program) -> None:
        self.program = program
        outputs = {output.name for output in program.outputs}
        inner = [stage for stage in program.stages if stage.name not in outputs]
        self.score_stages = [s for s in inner if not isinstance(roles_of(program, s), str)]
        self.scalar_stages = [s for s in inner if s not in self.score_stages]
        self._check(inner)
        self.axes = self.score_stages[0].axes
        self.named = [
            named_alike(program, program.stage[output.name], self.score_stages)
            for output in program.outputs
        ]
        self.indexing = self._indexing()
        self.key = self._key()

    def pairwise(self) -> Pairwise:
        """Return the whole view."""
        scalars = tuple(map(self._scalar, self.scalar_stages))
        sums = tuple(map(self._sum, self.named))
        scores = tuple(map(self._score, self.score_stages))
        batch, rows = self._batch_and_rows(scores, scalars, sums)
        bounds, conditions = bounding_indices(self._conditions(), self.indexing, self.key.name)
        for named, each in zip(self.named, sums, strict=True):
            self._check_sum(named, each, batch, rows)
        bodies = [*conditions, *(scalar.body for scalar in scalars)]
        bodies += [side for score in scores for side in (score.left, score.right)]
        bodies += [part for each in sums for part in (each.weight, each.matrix)]
        return Pairwise(
            self.program, self.indexing, batch, rows, self.key, bounds, conditions,
            self._places(bodies), scores, scalars, sums,
        )  # fmt: skip

    # -- stages ------------------------------------------------------------------------------------

    def _check(self, inner: Sequence[Stage]) -> None:
        if not self.score_stages:
            raise InputError("needs products of rows and keys that sums read")
        for stage in inner:
            if stage.reducer != "sum" or len(stage.over) != 1:
                raise InputError(f"{stage.name} is no sum along one axis")
            if self.program.bounding(stage):
                raise InputError(f"{stage.name} is a sum under a condition")
            if made := [r.name for r in stage.body.reads if r.name in self.program.stage]:
                raise InputError(f"{stage.name} reads {made[0]}; needs sums of operands alone")
        axes = {tuple(sorted(stage.axes)) for stage in self.score_stages}
        if len(axes) > 1:
            raise InputError(f"{self.score_stages[-1].name} has other axes than the first product")
        for output in self.program.outputs:
            if self.program.stage[output.name].reducer != "sum":
                raise InputError(f"{output.name} is no sum of pairs")

    def _indexing(self) -> Indexing:
        bodies = [stage.body for stage in (*self.score_stages, *self.scalar_stages)]
        found = indexing(self.program, *bodies, *(e for n in self.named for e in n.expressions))
        if uneven := [a for a in self.axes if found.splits[a].uneven]:
            raise InputError(f"groups of {uneven[0]} are not all of one size")
        return found

    def _key(self) -> Part:
        """Return the one part of all pairs that one side of the first product reads alone: the
        last axis of that product if either side is such."""
        first, *_ = self.score_stages
        found = roles_of(self.program, first)
        assert not isinstance(found, str)
        kept = {part.name for axis in self.axes for part in self.indexing.parts(axis)}
        reads = [self.indexing.reads(side) & kept for side in (found.left, found.right)]
        own = [reads[0] - reads[1], reads[1] - reads[0]]
        (last,) = self.indexing.parts(self.axes[-1])[-1:]
        single = [names for names in own if len(names) == 1]
        chosen = next((names for names in single if last.name in names), (*single, frozenset())[0])
        for axis in self.axes:
            if {part.name for part in self.indexing.parts(axis)} == chosen:
                return whole_axes(self.program)[axis].parts[0]
        raise InputError(f"{first.name} has no side with one axis of its own")

    def _score(self, stage: Stage) -> Score:
        (depth,) = self._whole(stage.over[0])
        left, right = self._sides(stage.name, stage.body)
        return Score(Read(stage.name, tuple(map(AxisValue, stage.axes))), left, right, depth)

    def _sides(self, name: str, body: Expression) -> tuple[Expression, Expression]:
        """Return the factors that read no key, and those that do and read no row."""
        parts = list(factors(body))
        right = [f for f in parts if self.key.name in self.indexing.reads(f)]
        if not right or len(right) == len(parts):
            raise InputError(f"{name} is no product of a row and a key")
        return product(f for f in parts if f not in right), product(right)

    def _scalar(self, stage: Stage) -> Scalar:
        (term,) = self._whole(stage.over[0])
        if term.extent > LONGEST:
            raise InputError(f"{stage.name} adds {term.extent} terms; allowed: up to {LONGEST}")
        if not set(stage.axes) <= set(self.axes):
            raise InputError(f"{stage.name} is no number of each row or key")
        read = Read(stage.name, tuple(map(AxisValue, stage.axes)))
        of_key = self.key.name in self.indexing.reads(read)
        return Scalar(read, stage.body, term, of_key)

    def _sum(self, named: Named) -> PairSum:
        name = named.stage.name
        wide = [a for a in named.own if self.program.extent[a] > 1]
        if len(wide) != 1:
            raise InputError(f"{name} has axes {', '.join(wide) or 'none'} of its own; needs one")
        (width,) = self._whole(wide[0])
        parts = factors(named.body)
        matrix = [f for f in parts if width.name in self.indexing.reads(f)]
        weight = [f for f in parts if f not in matrix]
        output = next(o for o in self.program.outputs if o.name == name)
        place = self.indexing.place(named.axes, output.strides)
        own = ChainedOutput(output, Read(name, tuple(named.axes)), place, wide=True)
        of_key = self.key.name in place.names
        return PairSum(product(weight), product(matrix), width, own, of_key)

    def _whole(self, axis: str) -> tuple[Part, ...]:
        parts = self.indexing.parts(axis)
        if len(parts) != 1 or axis in self.axes:
            raise InputError(f"{axis} is read in parts")
        return parts

    # -- pairs -------------------------------------------------------------------------------------

    def _batch_and_rows(
        self, scores: Iterable[Score], scalars: Iterable[Scalar], sums: Iterable[PairSum]
    ) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
        """Return the parts that tell products apart, which some key has too, and those of rows."""
        of_keys = [score.right for score in scores]
        of_keys += [each.matrix for each in sums if not each.of_key]
        of_keys += [scalar.body for scalar in scalars if scalar.of_key]
        read = frozenset().union(*map(self.indexing.reads, of_keys))
        kept = [part for axis in self.axes for part in self.indexing.parts(axis)]
        others = [part for part in kept if part.name != self.key.name]
        batch = tuple(part for part in others if part.name in read)
        return batch, tuple(part for part in others if part not in batch)

    def _check_sum(
        self, named: Named, each: PairSum, batch: Sequence[Part], rows: Sequence[Part]
    ) -> None:
        name, key = named.stage.name, {self.key.name}
        row = {part.name for part in rows if part.extent > 1}
        needed = {part.name for part in batch if part.extent > 1}
        needed |= key if each.of_key else row
        hidden = row if each.of_key else key
        summed = frozenset[str]().union(*(self.indexing.reads(over) for over in named.over))
        summed = frozenset(n for n in summed if self._extent(n) > 1)
        place = each.output.offset.names - {each.width.name}
        if summed != {n for n in hidden if self._extent(n) > 1} or not needed <= place:
            raise InputError(f"{name} is no sum over all keys of a row, or all rows of a key")
        if not (place & hidden).isdisjoint(row | key):
            raise InputError(f"{name} has an element for each pair")
        other = row if not each.of_key else key
        if not self.indexing.reads(each.matrix).isdisjoint(other):
            side = "row" if not each.of_key else "key"
            raise InputError(f"{name} adds up what differs from {side} to {side}")

    def _extent(self, name: str) -> int:
        kept = (part for axis in self.axes for part in self.indexing.parts(axis))
        return next((part.extent for part in kept if part.name == name), 0)

    def _conditions(self) -> tuple[Comparison, ...]:
        """Return the conditions of all sums: the same of each."""
        first, *others = self.named
        for other in others:
            if set(other.conditions) != set(first.conditions):
                names = f"{first.stage.name} and {other.stage.name}"
                raise InputError(f"{names} are sums under different conditions")
        return first.conditions

    def _places(self, bodies: Sequence[Expression]) -> Mapping[Read, Address]:
        found = dict.fromkeys(read for body in bodies for read in body.value_reads)
        known = {*self.score_stages, *self.scalar_stages}
        inner = {Read(s.name, tuple(map(AxisValue, s.axes))) for s in known}
        operands = [read for read in found if read not in inner]
        for read in operands:
            if read.name not in self.program.operand:
                raise InputError(f"{read} is computed for other rows or keys than those of a pair")
        places = {read: address_of(self.program, self.indexing, read) for read in operands}
        for read, at in places.items():
            if at.bounds:
                raise InputError(f"{read} may leave its array; rows and keys are read within")
            for entry in at.offset.entries:
                if entry.table not in self.program.operand:
                    raise InputError(f"{read} is read at {entry.formula}, which is computed")
        return places
