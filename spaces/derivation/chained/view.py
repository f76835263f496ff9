"""A program as a product, a chain of reductions over its columns, and products of what that gives.

    score[batch, row, key] = factor * sum[depth](left[batch, row, depth] * right[batch, key, depth])
    s[batch, row]          = reduce[key](f(score, s of before))           scalars of a row
    t[batch, row, width]   = sum[key](w(score, s) * matrix[batch, key, width])   weighings

Attention is such a program, and so is any other whose chain has corrections
(:mod:`spaces.derivation.chains`): then one pass over the keys gives all, tile by tile, and no score
is ever an array. Roles and places are those of the score
(:mod:`spaces.derivation.products.roles`); heads that share keys are rows of one product.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.derivation.algebra import ONE, factors, product
from tilewright.spaces.derivation.chained.bounds import bounding_indices
from tilewright.spaces.derivation.chained.gathered_scores import with_gathered_scores
from tilewright.spaces.derivation.chained.rows_and_keys import RowsAndKeys
from tilewright.spaces.derivation.chains.chain import chain
from tilewright.spaces.derivation.chains.chain_reduction import ChainReduction, Scaling
from tilewright.spaces.derivation.products.addresses import Address, address_of
from tilewright.spaces.derivation.products.roles import Roles, roles_of
from tilewright.spaces.derivation.products.splitting import Indexing, Part, whole_axes
from tilewright.spaces.derivation.rows.passes import Expander, counting, online_passes
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.program import Output, Program, Stage
from tilewright.spaces.language.tree import AxisValue, Expression, Read


@dataclass(frozen=True)
class Weighing:
    """The sum over keys of ``weight`` times the row that a matrix has for each key; an entry of the
    matrix may be any expression that reads no row."""

    reduction: ChainReduction
    weight: Expression
    matrix: Expression


@dataclass(frozen=True)
class ChainedOutput:
    """An output: its value, of operands and of final results, and its element at a point. It has
    one for each place along the width if ``wide``, else one a row."""

    array: Output
    value: Expression
    offset: Index
    wide: bool


@dataclass(frozen=True)
class Chained(RowsAndKeys):
    """A program so.

    Expressions read ``score``, operands at ``places``, and reductions by name: their states in
    ``scalars`` and weights, their results in outputs. Calls give the extent of ``open_axis``, if
    there is one; that of the program is the most.
    """

    depth: Part
    width: Part
    score: Read
    left: Expression
    right: Expression
    factor: Expression
    scalars: tuple[ChainReduction, ...]
    weighings: tuple[Weighing, ...]
    outputs: tuple[ChainedOutput, ...]
    open_axis: str | None = None

    @property
    def offsets(self) -> tuple[Index, ...]:
        """The places of outputs."""
        return tuple(output.offset for output in self.outputs)

    @property
    def scaled_left(self) -> Expression:
        """The left operand with the factor of all scores in it."""
        return product((self.left, self.factor))

    @cached_property
    def unscaled(self) -> Chained:
        """Return the same where ``score`` is the sum alone, and what reads it has the factor."""

        def scaled(node: Expression) -> Expression:
            if node == self.score:
                return product((self.factor, node))
            if isinstance(node, Read):
                return node
            return node.with_children(tuple(map(scaled, node.children)))

        scalars = (replace(r, element=scaled(r.element)) for r in self.scalars)
        weighings = (replace(w, weight=scaled(w.weight)) for w in self.weighings)
        return replace(self, scalars=tuple(scalars), weighings=tuple(weighings), factor=ONE)

    @cached_property
    def reductions(self) -> tuple[ChainReduction, ...]:
        """All reductions over the keys."""
        return (*self.scalars, *(weighing.reduction for weighing in self.weighings))

    @property
    def expressions(self) -> Iterator[Expression]:
        """All expressions that kernels may compute."""
        yield from (self.left, self.right, self.factor, *self.conditions)
        yield from (output.value for output in self.outputs)
        yield from (e for w in self.weighings for e in (w.weight, w.matrix))
        for r in self.reductions:
            yield from (r.element, r.result, *r.corrected_by)

    @property
    def found_places(self) -> tuple[str, ...]:
        """The scalars that are places of keys."""
        return tuple(r.name for r in self.scalars if r.reducer in ("argmax", "argmin"))

    def reads_key(self, expression: Expression) -> bool:
        """Tell whether an expression differs from key to key."""
        if expression == self.score:
            return True
        if isinstance(expression, Read) and expression not in self.places:
            return False
        return self.key.name in self.indexing.reads(expression) or any(
            map(self.reads_key, () if isinstance(expression, Read) else expression.children)
        )

    def in_place(self, matrix: Expression) -> Read | None:
        """Return the read that a matrix is, if it is an array of floats with steps along both
        axes."""
        if not isinstance(matrix, Read):
            return None
        own = {self.key.name, self.depth.name, self.width.name}
        gathered = any(self.places[matrix].offset.step(name) is None for name in own)
        is_float = not self.program.operand[matrix.name].element.is_integer
        return matrix if is_float and not gathered else None


@lru_cache(maxsize=64)
def chained_of(program: Program) -> Chained | str:
    """The program so, or why it is none, in words."""
    try:
        return _Reader(program).chained()
    except InputError as reason:
        return str(reason)


class _Reader:
    """Finds the parts of a program and refuses what no pass over the keys can give."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.product, self.over = self._product()
        self.program = with_gathered_scores(program, self.product)
        self.roles = self._roles()
        self.indexing = self._whole_keys()
        self.score = Read(self.product.name, tuple(map(AxisValue, self.product.axes)))
        self.expander = Expander(self.program, self.over, counting(program, self._chain))

    @cached_property
    def _chain(self) -> tuple[Stage, ...]:
        return tuple(s for s in self.program.stages if s.reducer and s is not self.product)

    def _product(self) -> tuple[Stage, tuple[str, ...]]:
        """Return the first reduction, and the one axis that all others go over."""
        found = [stage for stage in self.program.stages if stage.reducer]
        if len(found) < 2:
            raise InputError("needs a product and a chain of reductions over its columns")
        first, *others = found
        over = {frozenset(stage.over) for stage in others}
        if len(over) > 1 or len(others[0].over) != 1 or not over <= {frozenset(first.axes[-1:])}:
            axes = "; ".join(", ".join(stage.over) for stage in others)
            raise InputError(
                f"reductions after {first.name} go over {axes}; needs one axis, its last, for all"
            )
        return first, others[0].over

    def _roles(self) -> Roles:
        found = roles_of(self.program, self.product)
        if isinstance(found, str):
            raise InputError(found)
        if {part.axis for part in found.columns} != set(self.over):
            raise InputError(f"{self.product.name} has other columns than {', '.join(self.over)}")
        if len(found.depth) != 1 or found.conditions:
            raise InputError(f"{self.product.name} needs one axis that is summed over, whole")
        splits = found.indexing.splits.items()
        if uneven := [a for a, split in splits if split.uneven and a not in self.over]:
            raise InputError(f"groups of {uneven[0]} are not all of one size")
        return found

    def _whole_keys(self) -> Indexing:
        """Indices by parts, the keys in one: pages of a table of keys are entries of it."""
        found, key = self.roles.indexing, self.over[0]
        return Indexing({**found.splits, key: whole_axes(self.program)[key]}, found.tables)

    def chained(self) -> Chained:
        """Return the whole view."""
        (key,), (depth,) = self.indexing.parts(self.over[0]), self.roles.depth
        left, factor = self.roles.left, self.roles.leaving
        scalars, weighings, width = self._reductions()
        bounds, conditions = bounding_indices(
            self.program.bounding(self._chain[0]), self.indexing, key.name
        )
        outputs = tuple(self._output(output, width) for output in self.program.outputs)
        bodies = [left, factor, self.roles.right, *conditions, *(o.value for o in outputs)]
        bodies += [weighing.matrix for weighing in weighings]
        for r in (*scalars, *(w.reduction for w in weighings)):
            bodies += [r.element, r.result]
            bodies += [r.correction.exponent] if isinstance(r.correction, Scaling) else []
        batch, rows = self._batch_and_rows(weighing.matrix for weighing in weighings)
        chained = Chained(
            self.program, self.indexing, batch, rows, key, bounds, conditions,
            self._places(bodies), depth, width, self.score, left, self.roles.right, factor,
            scalars, weighings, outputs,
        )  # fmt: skip
        return chained.unscaled if chained.reads_key(factor) else chained

    def _batch_and_rows(
        self, matrices: Iterable[Expression]
    ) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
        """Return the score's, but what any matrix differs along numbers products too."""
        read = frozenset().union(*map(self.indexing.reads, matrices))
        apart = tuple(part for part in self.roles.rows if part.name in read)
        together = tuple(part for part in self.roles.rows if part not in apart)
        return (*self.roles.batch, *apart), together

    def _reductions(self) -> tuple[tuple[ChainReduction, ...], tuple[Weighing, ...], Part]:
        passes = online_passes(self.program, self.expander, strict=False)
        if len(passes) > 1:
            name, why = chain(self.program, self.over).refusals[0]
            raise InputError(
                f"the chain over {self.over[0]} has no corrections for one pass: in {name}, {why}; "
                "what a key gives may read results of its row in a factor, a polynomial, or in exp"
            )
        own = set(self.product.axes) - set(self.over)
        scalars, weighings, width = [], [], None
        for r in passes[0]:
            further = [a for a in r.axes if a not in own and self.program.extent[a] > 1]
            if not further:
                scalars.append(r)
                continue
            if len(further) > 1 or (width and width.name != further[0]):
                raise InputError(f"{r.name} has axes {', '.join(further)} of its own; needs one")
            (width,) = self.indexing.parts(further[0])
            weighings.append(self._weighing(r, width))
        return tuple(scalars), tuple(weighings), width or Part("1", "1", 1)

    def _weighing(self, r: ChainReduction, width: Part) -> Weighing:
        def wide(factor: Expression) -> bool:
            return width.name in self.indexing.reads(factor)

        found = factors(r.element)
        matrix = product(f for f in found if wide(f))
        if r.reducer != "sum" or matrix == ONE:
            raise InputError(f"{r.element} is no weight of a key times an entry of a matrix")
        if not (r.correction is None or isinstance(r.correction, Scaling)):
            raise InputError(f"{r.name} is not corrected by a factor: {r.correction}")
        return Weighing(r, product(f for f in found if not wide(f)), matrix)

    def _output(self, output: Output, width: Part) -> ChainedOutput:
        stage = self.program.stage[output.name]
        own = Read(output.name, tuple(map(AxisValue, stage.axes)))
        value = self.expander.expanded(own if stage.reducer else stage.body)
        offset = self.indexing.place(map(AxisValue, stage.axes), output.strides)
        needed = {p.name for p in (*self.roles.batch, *self.roles.rows) if p.extent > 1}
        if needed - offset.names or offset.names & {p.name for p in self.roles.columns}:
            raise InputError(f"{output.name} has not an element for each row")
        return ChainedOutput(output, value, offset, width.name in offset.names)

    def _places(self, bodies: Sequence[Expression]) -> Mapping[Read, Address]:
        found = dict.fromkeys(read for body in bodies for read in body.value_reads)
        operands = [read for read in found if read.name in self.program.operand]
        places = {read: address_of(self.program, self.indexing, read) for read in operands}
        if outside := [read for read, at in places.items() if at.bounds]:
            raise InputError(f"{outside[0]} may leave its array; rows and keys are read within")
        for read, at in places.items():
            for entry in at.offset.entries:
                if entry.table not in self.program.operand:
                    raise InputError(f"{read} is read at {entry.formula}, which is computed")
        return places
