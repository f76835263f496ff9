"""Find inputs of a product that are sensitive: they distinguish right kernels from wrong ones.

The output of ``relu(x - 1000)`` is zero wherever the sum ``x`` is small: any kernel that writes
zeros would pass. Here mistakes are planted into a few elements, computed exactly, and compared with
the allowed bounds (:mod:`spaces.numerics.allowance`). Where the usual inputs hide the mistakes, the
first input is multiplied by a power of two that shows them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from tilewright.spaces.dtypes import DType, dtype
from tilewright.spaces.errors import InputError
from tilewright.spaces.numerics.allowance import agrees, allowed
from tilewright.spaces.workloads.matmul import Matmul, Operand

SIDE, DEEP_SIDE, DEEP = 16, 4, 1 << 16  # rows and columns of a sample; where sums are long
PRODUCTS_PER_AXIS = 2  # products of a sample along each axis of a batch
SHARE = 1 / 32  # a mistake that shows in this share of a sample's elements is sure to be found
ENOUGH = 64  # elements of an output that a mistake is expected in, for every draw to have one
SEEDS = range(20, 24)


@dataclass(frozen=True)
class Sensitivity:
    """The way to draw inputs of a workload: the first input's ``scale``, and the ``share`` of
    elements that shows the least visible of the mistakes that must show, in the worst draw.
    """

    scale: float
    share: float

    def is_sure(self, matmul: Matmul) -> bool:
        """Tell whether every draw shows mistakes, by its sheer size."""
        return self.share * matmul.output.size >= ENOUGH


@dataclass(frozen=True)
class Sums:
    """Sums of products; of the first half of their terms, if there are two; of the last one."""

    whole: np.ndarray
    half: np.ndarray | None
    last: np.ndarray

    @staticmethod
    def of(matmul: Matmul, inputs: Mapping[str, np.ndarray]) -> Sums:
        """Compute the sums of a workload with one summed axis."""
        (depth,) = (axis for axis in matmul.axes if axis.reduction)

        def part(terms: slice) -> np.ndarray:
            fewer = _resized(matmul, {depth.name: terms.stop - terms.start})
            cut = {}
            for operand in matmul.factors:
                index = [terms if axis == depth.name else slice(None) for axis in operand.axes]
                cut[operand.name] = inputs[operand.name][tuple(index)]
            return fewer.contract(cut, small=True)

        half = depth.extent // 2
        last = slice(depth.extent - 1, depth.extent)
        return Sums(
            part(slice(0, depth.extent)), part(slice(0, half)) if half else None, part(last)
        )

    def times(self, scale: float) -> Sums:
        """Return the sums of inputs of which one is so much larger."""
        half = None if self.half is None else self.half * scale
        return Sums(self.whole * scale, half, self.last * scale)


@dataclass(frozen=True)
class Mistake:
    """The sums, operands or output of a wrong kernel."""

    name: str
    sums: np.ndarray | None = None
    operands: Mapping[str, np.ndarray] | None = None
    output: np.ndarray | None = None


@lru_cache(maxsize=256)
def sensitivity(matmul: Matmul) -> Sensitivity:
    """Choose how to draw inputs of ``matmul``; :class:`InputError` if no inputs show mistakes.

    Kernels that leave out much of the product must show in all cases. Finer mistakes need not: a
    mistake in an operand that is multiplied by zero cannot show.
    """
    sample = _sample(matmul)
    draws = [sample.make_inputs(seed) for seed in SEEDS]
    sums = [Sums.of(sample, inputs) for inputs in draws]
    best, most = Sensitivity(1.0, 0.0), (0.0, 0.0, 0)
    for scale in _scales(matmul):
        shares = []
        for inputs, unscaled in zip(draws, sums, strict=True):
            scaled = unscaled.times(scale)
            coarse = _least(sample, inputs, scaled, scale, _coarse(sample, scaled))
            fine = _shares(sample, inputs, scaled, scale, _fine(sample, inputs, scaled))
            shares.append((coarse, [share >= SHARE for share in fine]))
        seen = [any(draw) for draw in zip(*(fine for _, fine in shares), strict=True)]
        largest, least = max(coarse for coarse, _ in shares), min(coarse for coarse, _ in shares)
        rank = (min(largest, SHARE), min(least, SHARE), sum(seen))
        if rank > most:
            best, most = Sensitivity(scale, least), rank
        if rank == (SHARE, SHARE, len(seen)):
            break
    if most[0] == 0.0:
        raise InputError(
            f"{matmul.text} cannot be verified: whatever its inputs, its output does not show "
            "whether the product is right"
        )
    return best


def is_sensitive(matmul: Matmul, inputs: Mapping[str, np.ndarray], scale: float) -> bool:
    """Tell whether kernels that leave out much of the product fail on a sample of these inputs."""
    sample = _sample(matmul, within=True)
    generator = np.random.default_rng(SEEDS[0])
    chosen = {
        axis.name: np.sort(generator.permutation(axis.extent)[: sample.extents[axis.name]])
        for axis in matmul.axes
        if not axis.reduction
    }
    part = {}
    for operand in matmul.indexed:
        array = operand.plain(inputs[operand.name])
        for dimension, axis in enumerate(operand.axes):
            array = array.take(chosen[axis], dimension) if axis in chosen else array
        part[operand.name] = array
    sums = Sums.of(sample, part)
    return _least(sample, part, sums, scale, _coarse(sample, sums)) > 0


def _coarse(sample: Matmul, sums: Sums) -> Iterator[Mistake]:
    """Yield the mistakes that must show."""
    yield Mistake("zeros", output=np.zeros(sample.output.shape))
    yield Mistake("no product", sums=np.zeros_like(sums.whole))
    if sums.half is not None:
        yield Mistake("first half left out", sums=sums.whole - sums.half)
        yield Mistake("second half left out", sums=sums.half)


def _fine(sample: Matmul, inputs: Mapping[str, np.ndarray], sums: Sums) -> Iterator[Mistake]:
    """Yield the mistakes that should show where inputs allow it."""
    yield Mistake("last term left out", sums=sums.whole - sums.last)
    if {o.dtype for o in (*sample.factors, sample.output)} == {"float32"}:
        rounded = sums.whole.astype(dtype("bfloat16").numpy).astype(np.float64)
        yield Mistake("sums rounded to bfloat16", sums=rounded)
    for operand in sample.epilogue_inputs:
        value = inputs[operand.name]
        for ignored in (0, 1):
            other = np.full_like(value, ignored)
            yield Mistake(f"{operand.name} as {ignored}", operands={operand.name: other})
        for dimension, axis in enumerate(operand.axes):
            other = np.roll(value, 1, dimension)
            yield Mistake(f"{operand.name} shifted by {axis}", operands={operand.name: other})


def _least(
    sample: Matmul,
    inputs: Mapping[str, np.ndarray],
    sums: Sums,
    scale: float,
    mistakes: Iterable[Mistake],
) -> float:
    return min(_shares(sample, inputs, sums, scale, mistakes))


def _shares(
    sample: Matmul,
    inputs: Mapping[str, np.ndarray],
    sums: Sums,
    scale: float,
    mistakes: Iterable[Mistake],
) -> Iterator[float]:
    """Yield the share of the output's elements in which each mistake shows."""
    low, high = allowed(sample, sums.whole, inputs, scale)
    for mistake in mistakes:
        found = mistake.output
        if found is None:
            wrong = sums.whole if mistake.sums is None else mistake.sums
            finished = sample.finish(wrong, {**inputs, **(mistake.operands or {})})
            found = _stored(finished, sample.output.element)
        yield float(np.mean(~agrees(found, low, high)))


def _stored(values: np.ndarray, element: DType) -> np.ndarray:
    with np.errstate(all="ignore"):
        if element.is_integer:
            return np.rint(values)
        return np.asarray(element.cast(values)).astype(np.float64)


def _sample(matmul: Matmul, within: bool = False) -> Matmul:
    """Return one like it, with an output of a few elements each way; if ``within``, no more than
    its."""
    side = DEEP_SIDE if _terms(matmul) > DEEP else SIDE
    *numbers, row, column = (axis for axis in matmul.axes if not axis.reduction)
    sides = {row: side, column: side} | dict.fromkeys(numbers, PRODUCTS_PER_AXIS)
    return _resized(matmul, {a.name: min(n, a.extent) if within else n for a, n in sides.items()})


def _resized(matmul: Matmul, extents: Mapping[str, int]) -> Matmul:
    """Return the same with other ``extents`` of some axes, and factors that are not packed."""
    new = {**matmul.extents, **extents}

    def cut(operand: Operand) -> Operand:
        shape = tuple(new[axis] for axis in operand.axes)
        return replace(operand, shape=shape, leading=None, packed=False)

    return replace(
        matmul,
        axes=tuple(replace(axis, extent=new[axis.name]) for axis in matmul.axes),
        factors=tuple(map(cut, matmul.factors)),
        epilogue_inputs=tuple(map(cut, matmul.epilogue_inputs)),
        output=cut(matmul.output),
    )


def powers(dtype: str) -> tuple[int, int]:
    """Return the least and the greatest power of two that inputs of a dtype may be multiplied
    by."""
    return _POWERS.get(dtype, (-100, 100))


_POWERS = {
    "float16": (-4, 12),
    "float8_e4m3fn": (-2, 8),
    "float8_e5m2": (-6, 14),
    "int8": (0, 4),
    "int32": (0, 10),
}


def _scales(matmul: Matmul) -> Iterator[float]:
    """Yield the powers of two that the first input's dtype and the sums have room for, from 1
    outwards."""
    least, most = powers(matmul.factors[0].dtype)
    limit = 2.0**14 / _terms(matmul) if matmul.accumulator == "float16" else float("inf")
    for power in sorted(range(least, most + 1), key=abs):
        listed = power % (2 if abs(power) <= 16 else 8) == 0
        if listed and (power <= 0 or 2.0**power <= limit):
            yield 2.0**power


def _terms(matmul: Matmul) -> int:
    return max(axis.extent for axis in matmul.axes if axis.reduction)
