"""A recurrence by chunks of positions: products of matrices within a chunk, a state between chunks.

    score[t, j] = sum[inner](left[t, inner] * right[j, inner])
    y[t, v] = scale(t, v) * sum[j: j <= t](power(t, j) * weight(j) * score[t, j] * matrix[j, v])

Within a chunk that is a product of scores, weighed, and a matrix; all terms before it are a state
``[inner, v]``, which the left factors read (Hua and others, Transformer Quality in Linear Time,
ICML 2022; Yang and others, Gated Linear Attention Transformers, ICML 2024). A power depends on
positions alone, as all elements of a score share it. Positions are numbered in the order in which
the state passes through them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.derivation.algebra import ONE, ZERO, product
from tilewright.spaces.derivation.chained.rows_and_keys import RowsAndKeys
from tilewright.spaces.derivation.chained.view import ChainedOutput
from tilewright.spaces.derivation.products.addresses import address_of
from tilewright.spaces.derivation.products.splitting import Indexing, Part, Split, whole_axes
from tilewright.spaces.derivation.recurrent.view import Decay, Recurrence, recurrence_of
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.program import Program
from tilewright.spaces.language.tree import AxisValue, Expression, Read


@dataclass(frozen=True)
class Chunks(RowsAndKeys):
    """A program so: the recurrence ``carried``, whose factors are ``left`` and ``right`` of scores,
    the ``matrix``, the ``weight`` of a term, and the ``scale`` of a sum. Rows and keys are
    positions. Outputs read the sum as ``total``."""

    carried: Recurrence
    inner: tuple[Part, ...]
    width: Part
    left: Expression
    right: Expression
    matrix: Expression
    weight: Expression
    scale: Expression
    total: Read
    outputs: tuple[ChainedOutput, ...]

    @property
    def offsets(self) -> tuple[Index, ...]:
        """The places of outputs."""
        return tuple(output.offset for output in self.outputs)

    @property
    def depth(self) -> int:
        """The number of terms of a score."""
        return self.carried.extent(*self.carried.inner)

    @property
    def has_weight(self) -> bool:
        """Tell whether terms have a weight beside their power."""
        return self.weight != ONE

    @property
    def decay(self) -> Decay | None:
        """The powers of terms: ones that weights alone scale, if they have weights alone; None if
        they have neither."""
        alone = Decay("exp2", ZERO, ZERO, ZERO) if self.has_weight else None
        return self.carried.decay or alone

    @property
    def score(self) -> str | None:
        """The name of the stage of scores; None if their terms are summed with those of the sum, so
        that no score is a number of the program."""
        return self.carried.merged[0].name if self.carried.merged else None

    @property
    def has_rounded_scores(self) -> bool:
        """Tell whether the program means that weighed scores are rounded to the dtype of the
        matrix: they are factors of its terms, or powers are, which they are rounded like."""
        return self.score is not None or self.carried.decay is not None

    @property
    def expressions(self) -> Iterator[Expression]:
        """All expressions that kernels compute."""
        return self.carried.expressions


@lru_cache(maxsize=64)
def chunks_of(program: Program) -> Chunks | str:
    """Return the program so, or why it is none, in words."""
    try:
        return _chunks(recurrence_of(program))
    except InputError as reason:
        return str(reason)


def _chunks(view: Recurrence) -> Chunks:
    program, lane, inner = view.program, view.lane, frozenset(view.inner)
    if not inner:
        raise InputError(f"the terms of {view.name} have no product that is summed")
    if len(view.merged) > 1 or any(not inner <= set(stage.over) for stage in view.merged):
        raise InputError(f"the terms of {view.name} have sums of several products")
    if view.decay is not None and (found := view.decay.axes & {*inner, lane}):
        raise InputError(f"decays differ along {', '.join(sorted(found))}; chunks share them")
    for factor in (*view.added, *view.read):
        if lane in factor.axes and not inner.isdisjoint(factor.axes):
            raise InputError(f"{factor} is of a score and of a lane at once")
    matrix = [factor for factor in view.added if lane in factor.axes]
    if not matrix:
        raise InputError(f"what is summed is the same for all {lane}")
    indexing = _indexing(program, view)
    whole = {axis: split.parts for axis, split in indexing.splits.items()}
    total = Read(view.name, tuple(map(AxisValue, program.stage[view.name].axes)))
    own, shared = _apart([f for f in view.added if f not in matrix], inner)
    reading, scaling = _apart(view.read, inner)
    (position,) = whole[view.position]
    (width,) = whole[lane]
    outputs = tuple(
        ChainedOutput(
            output,
            view.values[output.name],
            indexing.place(map(AxisValue, program.stage[output.name].axes), output.strides),
            wide=True,
        )
        for output in program.outputs
    )
    reads = dict.fromkeys(r for e in view.expressions for r in e.value_reads if r.name != view.name)
    constant = [factor for factor in shared if not factor.axes and not tuple(factor.value_reads)]
    return Chunks(
        program,
        indexing,
        tuple(part for axis in view.rows for part in whole[axis]),
        (position,),
        position,
        (),
        (),
        {read: address_of(program, indexing, read) for read in reads},
        view,
        tuple(part for axis in view.inner for part in whole[axis]),
        width,
        product(reading),
        product(own),
        product(matrix),
        product(factor for factor in shared if factor not in constant),
        product((*constant, *scaling)),
        total,
        outputs,
    )


def _indexing(program: Program, view: Recurrence) -> Indexing:
    """Return the axes as they are, but the position in the order of the state."""
    splits = whole_axes(program)
    if view.backwards:
        (part,) = splits[view.position].parts
        splits[view.position] = Split((part,), part.index * -1 + (part.extent - 1))
    return Indexing(splits, {})


def _apart(
    found: Iterable[Expression], inner: frozenset[str]
) -> tuple[Sequence[Expression], Sequence[Expression]]:
    """Return the factors that differ along inner axes, and all others but one."""
    every = [factor for factor in found if factor != ONE]
    own = [factor for factor in every if not inner.isdisjoint(factor.axes)]
    return own, [factor for factor in every if factor not in own]
