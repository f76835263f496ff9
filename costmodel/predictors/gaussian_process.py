"""A Gaussian process over the decisions of a space: what a schedule's neighbours say of it.

Trees find the edges of a landscape, and know nothing of what lies between them; a smooth guess from
the neighbours errs elsewhere. The covariance of two schedules falls exponentially with how far they
are apart, where each coordinate has a weight of its own (a product of Ornstein-Uhlenbeck kernels,
rough as landscapes of kernels are). The weights and the noise are those that make the outcomes
likeliest, under a broad prior (Rasmussen and Williams, "Gaussian Processes for Machine Learning",
MIT Press 2006, chapter 5).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tilewright.costmodel.library import one_thread
from tilewright.costmodel.sizes import is_size, odd_part
from tilewright.spaces.schedule import Value
from tilewright.spaces.space import Population, Space

SHAPE_ROWS = 128
"""Outcomes that weights and noise are learned from, of more those spread evenly over the scores."""

STEPS = 8
"""Steps of the search for the likeliest."""

REACH, NOISE = 1.5, 0.1
"""Prior expectations: the weighted distance between opposite corners, and the variance of the noise
over that of the scores."""

BREADTH = 2.0
"""Standard deviation of their logarithms, before any outcome is known."""

FLOOR = 0.1
"""Weight of an outcome beside its score: the fast ones are those to be told apart."""

LEAST_NOISE = 1e-6
ROWS_AT_ONCE = 512  # schedules whose covariances are in memory


class GaussianProcess:
    """A process learned from the ``scores`` of the schedules in ``population``, at least two of
    them.

    ``unseen`` is what it says of each of them from the others alone (ibid., equation 5.12).
    """

    def __init__(self, space: Space, population: Population, scores: np.ndarray) -> None:
        self._scales = list(_coordinates(space))
        self._level, self._unit = float(scores.mean()), float(scores.std()) + LEAST_NOISE
        outcomes = (scores - self._level) / self._unit
        order = np.argsort(scores, kind="stable")
        some = order[np.linspace(0, len(order) - 1, min(SHAPE_ROWS, len(order))).astype(int)]
        place, rough = self._places(population), _roughness(scores)
        with one_thread():
            self._weights, noise = likeliest(place[some], outcomes[some], rough[some])
            self._known = place * self._weights
            noisy = _covariance(self._known, self._known) + np.diag(noise * rough)
            precision = np.linalg.inv(noisy)
            self._pull = precision @ outcomes
        self.unseen = scores - self._unit * self._pull / np.diag(precision)

    def predict(self, population: Population) -> np.ndarray:
        """Scores: float64, one a schedule."""
        place = self._places(population) * self._weights
        said = np.empty(len(place))
        with one_thread():
            for first in range(0, len(place), ROWS_AT_ONCE):
                rows = slice(first, first + ROWS_AT_ONCE)
                said[rows] = _covariance(place[rows], self._known) @ self._pull
        return self._level + self._unit * said

    def _places(self, population: Population) -> np.ndarray:
        """Say where schedules lie, float64 [schedules, coordinates], each of these between 0 and
        1."""
        place = np.empty((len(population), len(self._scales)))
        for i, (column, scale) in enumerate(self._scales):
            place[:, i] = scale[population[:, column]]
        return place


def likeliest(
    place: np.ndarray, outcomes: np.ndarray, rough: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return the weight of each coordinate and the variance of the noise, of which each outcome has
    ``rough`` times as much, under which ``outcomes`` (mean 0, variance 1) at ``place`` [rows,
    coordinates] are likeliest, by the gradient of their marginal likelihood (ibid., equations 5.8
    and 5.9)."""
    from scipy.optimize import minimize

    _, width = place.shape
    apart = np.abs(place.T[:, :, None] - place.T[:, None, :])
    guess = np.log([*[REACH / max(width, 1)] * width, NOISE])

    def unlikelihood(logs: np.ndarray) -> tuple[float, np.ndarray]:
        *weights, noise = np.exp(logs)
        smooth = np.exp(-np.tensordot(np.array(weights), apart, 1))
        noisy = smooth + np.diag((noise + LEAST_NOISE) * rough)
        precision = np.linalg.inv(noisy)
        pull = precision @ outcomes
        slope = 0.5 * (np.outer(pull, pull) - precision)
        gradient = [*(weights * np.tensordot(apart, slope * smooth, 2))]
        gradient.append(-noise * np.diag(slope) @ rough)
        away = (logs - guess) / BREADTH
        value = 0.5 * (outcomes @ pull + np.linalg.slogdet(noisy)[1] + away @ away)
        return value, np.array(gradient) + away / BREADTH

    bounds = [(at - 4 * BREADTH, at + 3 * BREADTH) for at in guess]
    found = minimize(
        unlikelihood,
        guess,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": STEPS},
    )
    *weights, noise = np.exp(found.x)
    return np.array(weights), float(noise) + LEAST_NOISE


def _roughness(scores: np.ndarray) -> np.ndarray:
    """Return the noise of each score, of their mean: slow schedules need be known less well, as by
    the trees' loss."""
    weight = scores + FLOOR
    rough: np.ndarray = weight.mean() / weight
    return rough


def _covariance(place: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the covariance of schedules at ``place`` with each at ``known``, both weighted."""
    from scipy.spatial.distance import cdist

    distance: np.ndarray = cdist(place, known, "cityblock")
    return np.exp(np.negative(distance, out=distance), out=distance)


def _coordinates(space: Space) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the columns of a population, and the coordinate of each value in them.

    A number has one by its logarithm, a size another one by its odd part (see
    ``costmodel.sizes``); anything else, and the template, has one for each value.
    """
    decisions = [d for template in space.templates.values() for d in template.decisions]
    choices: list[Sequence[Value]] = [tuple(space.templates), *(d.values for d in decisions)]
    for column, values in enumerate(choices):
        for scale in _scales(values) if len(values) > 1 else ():
            yield column, scale


def _scales(values: Sequence[Value]) -> Iterator[np.ndarray]:
    if not all(isinstance(value, int | float) for value in values):
        yield from np.eye(len(values))
        return
    numbers = np.array(values, dtype=np.float64)
    yield _spread(np.copysign(np.log2(1.0 + np.abs(numbers)), numbers))
    odd = odd_part(np.array(values, dtype=np.int64)) if is_size(values) else np.ones(1)
    if odd.min() < odd.max():
        yield _spread(np.log2(odd))


def _spread(values: np.ndarray) -> np.ndarray:
    """Scale columns to 0 to 1; all 0 where they are too large to be told apart."""
    return (values - values.min()) / (np.ptp(values) or 1.0)
