"""Products of factors of a state, and their sums over terms and points of inner axes.

Rows ``r`` are independent of each other. A state has points ``d`` of inner axes and lanes ``e``,
and is carried along positions ``t``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np


@dataclass(frozen=True)
class Product:
    """A product of factors: of those with the axis of the lane, ``lanes[r, t, e]``, of those
    without, ``inner[r, t, d]``, and of those with inner axes as well, ``both[r, t, d, e]`` or
    None."""

    inner: np.ndarray
    lanes: np.ndarray
    both: np.ndarray | None

    @staticmethod
    def of(factors: Sequence[np.ndarray], shape: Sequence[int]) -> Product:
        """Multiply factors of four dimensions that broadcast to a ``shape``."""

        def times(found: Iterable[np.ndarray]) -> np.ndarray:
            return reduce(np.multiply, found, np.ones((1, 1, 1, 1)))

        rows, positions, inner, lanes = shape
        both = [f for f in factors if f.shape[2] > 1 and f.shape[3] > 1]
        across = [f for f in factors if f.shape[2] == 1 and f.shape[3] > 1]
        along = times(f for f in factors if f.shape[3] == 1)[..., 0]
        return Product(
            np.broadcast_to(along, (rows, positions, inner)),
            np.broadcast_to(times(across)[:, :, 0], (rows, positions, lanes)),
            np.broadcast_to(times(both), shape) if both else None,
        )

    def cut(self, part: slice) -> Product:
        """Return the factors at some positions."""
        both = None if self.both is None else self.both[:, part]
        return Product(self.inner[:, part], self.lanes[:, part], both)

    @property
    def is_finite(self) -> np.ndarray:
        """Tell for each position and lane whether all factors are."""
        found = np.isfinite(self.inner).all(-1)[..., None] & np.isfinite(self.lanes)
        return found if self.both is None else found & np.isfinite(self.both).all(2)

    @property
    def finite(self) -> Product:
        """The product with zeros in the place of factors that are not finite."""
        return Product(*(None if f is None else _finite(f) for f in self._arrays))  # type: ignore[arg-type]

    @property
    def _arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        return self.inner, self.lanes, self.both


def _finite(values: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(values), values, 0.0)


@dataclass(frozen=True)
class Side:
    """Products of all values on one side, of their magnitudes, and of these with how far they may
    be ``off``: the products of the parts of this for each factor that is not exact."""

    value: Product
    size: Product
    most: Product
    off: tuple[Product, ...]

    @staticmethod
    def of(factors: Sequence[tuple[np.ndarray, np.ndarray]], shape: Sequence[int]) -> Side:
        """Multiply pairs of values, and of how far each may be off."""
        sizes = [np.abs(value) for value, _ in factors]
        most = [size + radius for size, (_, radius) in zip(sizes, factors, strict=True)]
        off = [
            Product.of([*most[:place], radius, *sizes[place + 1 :]], shape)
            for place, (_, radius) in enumerate(factors)
            if radius.any()
        ]
        value, size, whole = (
            Product.of(each, shape) for each in ([value for value, _ in factors], sizes, most)
        )
        return Side(value, size, whole, tuple(off))

    def cut(self, part: slice) -> Side:
        """Return the products at some positions."""
        whole = (self.value.cut(part), self.size.cut(part), self.most.cut(part))
        return Side(*whole, tuple(each.cut(part) for each in self.off))

    @property
    def finite(self) -> Side:
        """The products with zeros in the place of factors that are not finite."""
        whole = (self.value.finite, self.size.finite, self.most.finite)
        return Side(*whole, tuple(each.finite for each in self.off))


def _times(product: Product, weight: np.ndarray) -> Product:
    """Multiply by weights, which have one of the axes of the state at most."""
    if weight.shape[3] == 1:
        return replace(product, inner=product.inner * weight[..., 0])
    return replace(product, lanes=product.lanes * weight[:, :, 0])


def _whole(product: Product) -> np.ndarray:
    """Return all points of a product."""
    found = product.inner[..., None] * product.lanes[:, :, None]
    return found if product.both is None else found * product.both


def _has_both(weight: np.ndarray, *products: Product) -> bool:
    """Tell whether some weight has both axes of the state."""
    return min(weight.shape[-2:]) > 1 or any(each.both is not None for each in products)


def terms_added(product: Product, weight: np.ndarray) -> np.ndarray:
    """Return what the terms of a block add to a state ``[r, d, e]``, by weights
    ``[r, t, d, e]``."""
    if _has_both(weight, product):
        return (_whole(product) * weight).sum(1)
    product = _times(product, weight)
    return product.inner.swapaxes(1, 2) @ product.lanes


def states_read(product: Product, weight: np.ndarray, state: np.ndarray) -> np.ndarray:
    """Return what the positions of a block read of a state, ``[r, t, e]``."""
    if _has_both(weight, product):
        return (_whole(product) * weight * state[:, None]).sum(2)
    product = _times(product, weight)
    return (product.inner @ state) * product.lanes


def pairs_read(reading: Product, weight: np.ndarray, added: Product) -> np.ndarray:
    """Return what the positions of a block read of its own terms, by weights
    ``[r, t, s, d, e]``."""
    if _has_both(weight, reading, added):
        every = _whole(reading)[:, :, None] * _whole(added)[:, None] * weight
        return every.sum((2, 3))
    if weight.shape[3] > 1:
        scores = np.einsum("rtsd,rtd,rsd->rts", weight[..., 0], reading.inner, added.inner)
        return (scores @ added.lanes) * reading.lanes
    scores = reading.inner @ added.inner.swapaxes(1, 2)
    if weight.shape[4] == 1:
        return ((scores * weight[..., 0, 0]) @ added.lanes) * reading.lanes
    found = np.einsum("rts,rtse,rse->rte", scores, weight[..., 0, :], added.lanes)
    return found * reading.lanes
