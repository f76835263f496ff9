"""The learned cost model: gradient-boosted trees over physical features.

Labels are best latency over latency within each workload and target; the loss is the squared error
weighted by the label, so that the fast schedules are told apart and the slow ones only known to be
slow. Failures are learned as their own (``costmodel.validity``): a score is the predicted label
times the probability that the schedule runs. A small ensemble gives the uncertainty: its members
are boosted together as the outputs of one model, each blind to its own random share of the rows,
and how far the members disagree is scaled to how far they were off on the rows they had not seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import log
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tilewright.costmodel.dataset import Group, Places, SpaceFor, group_examples
from tilewright.costmodel.features import Column, as_matrix, features
from tilewright.costmodel.interfaces import Example
from tilewright.costmodel.library import load_xgboost
from tilewright.costmodel.roofs.analytic import AnalyticModel
from tilewright.costmodel.storage import read_model, write_model
from tilewright.costmodel.validity import learn_validity, validity
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.space import Population, Space
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    import xgboost

LEAST_ROWS = 8  # the analytic model answers where fewer rows are known
LEAST_UNCERTAINTY = 0.01


@dataclass(frozen=True)
class Settings:
    """Says how the trees are grown; the defaults fit 256 rows in about 0.1 s of one core.

    ``rounds`` and ``depth`` are for 256 rows. The rounds grow as the square root of the rows, and
    from there on the depth by one for each four times as many, both within bounds. ``floor``
    is added to a label to make its weight, so that slow ones count too. Each of ``members`` sees
    a row with probability ``share``.
    """

    rounds: int = 40
    depth: int = 5
    learning_rate: float = 0.15
    bins: int = 32
    columns: float = 0.7
    members: int = 5
    share: float = 0.85
    floor: float = 0.1
    seed: int = 0
    threads: int = 1

    def grown(self, rows: int) -> tuple[int, int]:
        """Rounds and depth for so many rows."""
        ratio = rows / 256
        rounds = max(self.rounds / 2, self.rounds * ratio**0.5)
        return min(int(rounds), 400), min(self.depth + int(log(max(ratio, 1.0), 4)), 9)


@dataclass(frozen=True)
class Trained:
    """A trained model: its trees, their features, and the data that they learned from.

    ``error_scale`` turns the members' disagreement into a standard deviation. ``rows`` counts the
    schedules by (text of the workload, target fingerprint). ``validity`` predicts which schedules
    run; None if there were no failures. ``unseen`` are the predictions for each row by the members
    that did not learn from it. They are NaN for failures and for rows that all members learned
    from. A stored model has none.
    """

    booster: xgboost.Booster
    names: list[str]
    error_scale: float
    validity: xgboost.Booster | None
    rows: dict[tuple[str, str], int] = field(default_factory=dict)
    unseen: np.ndarray = field(default_factory=lambda: np.zeros(0))


class XGBoostModel:
    """Predicts best latency over latency; see :class:`costmodel.interfaces.CostModel`.

    Before it has ``LEAST_ROWS`` rows to learn from, the analytic model answers for it.
    Deterministic: the same examples in any order, and the same settings, give the same model.
    ``skipped`` counts the examples of the last fit whose schedule is in its space no more.
    """

    def __init__(self, settings: Settings = Settings(), space_for: SpaceFor = space_for) -> None:
        self.settings = settings
        self.skipped = 0
        self._space_for = cache(space_for)
        self._places = Places()  # a search fits the same schedules again and again
        self._analytic = AnalyticModel(space_for=self._space_for)
        self._trained: Trained | None = None

    @property
    def trained_on(self) -> Mapping[tuple[str, str], int]:
        """Rows by (text of the workload, target fingerprint) of the last fit; empty before it."""
        return self._trained.rows if self._trained else {}

    @property
    def workloads(self) -> list[Workload]:
        """The workloads that it was trained on. Those of other versions are left out."""
        found = []
        for text in dict.fromkeys(text for text, _ in self.trained_on):
            try:
                found.append(workload(text))
            except InputError:
                continue
        return found

    @property
    def trained(self) -> Trained | None:
        """The result of the last fit; None if there was too little to learn from."""
        return self._trained

    @property
    def unseen(self) -> np.ndarray:
        """See :class:`costmodel.interfaces.Learner`."""
        return self._trained.unseen if self._trained else np.zeros(0)

    def fit(self, examples: Sequence[Example]) -> None:
        """Train from scratch on all of ``examples``."""
        groups, self.skipped = group_examples(examples, self._space_for, self._places)
        self.fit_groups(groups)

    def fit_groups(self, groups: Sequence[Group]) -> None:
        """:meth:`fit` of examples that are grouped already."""
        self._trained = None
        if sum(len(group.latency) for group in groups) >= LEAST_ROWS:
            self._trained = self._train(groups)

    def predict(self, space: Space, population: Population) -> tuple[np.ndarray, np.ndarray]:
        """Scores and their standard deviations, float64 arrays of the population's length."""
        trained = self._trained
        if trained is None:
            return self._analytic.predict(space, population)
        if not len(population):
            return np.zeros(0), np.zeros(0)
        matrix = as_matrix(self.columns(space, population), trained.names, len(population))
        members, runs = _predict(trained.booster, matrix), validity(trained.validity, matrix)
        spread = runs * trained.error_scale * members.std(axis=1)
        return runs * members.mean(axis=1), np.maximum(spread, LEAST_UNCERTAINTY)

    def save(self, path: Path) -> None:
        """Write the model to ``path``; InputError where that is not possible.

        ValueError if there was too little to learn from, so that there are no trees.
        """
        if self._trained is None:
            raise ValueError(f"the model has not seen {LEAST_ROWS} schedules yet: nothing to save")
        t = self._trained
        write_model(path, t.booster, t.validity, t.names, t.error_scale, t.rows)

    @classmethod
    def load(
        cls, path: Path, settings: Settings = Settings(), space_for: SpaceFor = space_for
    ) -> XGBoostModel:
        """Return the model that :meth:`save` wrote; InputError if ``path`` is anything else."""
        model = cls(settings, space_for)
        model._trained = Trained(*read_model(path, settings.threads))
        return model

    def _train(self, groups: Sequence[Group]) -> Trained:
        columns = [self.columns(group.space, group.population) for group in groups]
        every = list(dict.fromkeys(name for named in columns for name in named))
        matrix = np.concatenate(
            [
                as_matrix(named, every, len(group.latency))
                for named, group in zip(columns, groups, strict=True)
            ]
        )
        varied = _varied(matrix)
        matrix = np.ascontiguousarray(matrix[:, varied])
        score = np.concatenate([group.score for group in groups])
        ran = score > 0
        fast = ran if ran.any() else ~ran  # whose labels are learned
        seen = self._seen(len(score))
        booster = self._boost(np.ascontiguousarray(matrix[fast]), score[fast], seen[fast])
        members = _predict(booster, matrix)
        unseen = np.where(fast, _by_others(members, seen), np.nan)
        return Trained(
            booster=booster,
            names=[name for name, keep in zip(every, varied, strict=True) if keep],
            error_scale=_error_scale(members, score, unseen),
            validity=learn_validity(matrix, ran, self.settings.seed, self.settings.threads),
            rows={(str(g.space.workload), g.name[1]): len(g.latency) for g in groups},
            unseen=unseen,
        )

    def columns(self, space: Space, population: Population) -> dict[str, Column]:
        """Return the features of each schedule, by name."""
        return features(space, population)

    def _labels(self, score: np.ndarray) -> np.ndarray:
        """Return the labels that trees learn, from scores in [0, 1]."""
        return score

    def _gradient(self, margin: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First and second derivatives of the loss by ``margin`` [rows, members], the trees' sum
        so far: squared error, weighted by the label so that the fast are told apart."""
        weight = np.repeat(labels[:, None] + self.settings.floor, margin.shape[1], axis=1)
        return weight * (margin - labels[:, None]), weight

    def _seen(self, rows: int) -> np.ndarray:
        """Return the rows that each member learns from, bool [rows, members]."""
        generator = np.random.default_rng(self.settings.seed)
        return generator.random((rows, self.settings.members)) < self.settings.share

    def _boost(self, matrix: np.ndarray, score: np.ndarray, seen: np.ndarray) -> xgboost.Booster:
        xgboost = load_xgboost()
        s = self.settings
        rounds, depth = s.grown(len(score))
        data = xgboost.QuantileDMatrix(
            matrix, label=np.zeros(seen.shape, np.float32), max_bin=s.bins, nthread=s.threads
        )
        labels = self._labels(score)

        parameters = {
            "tree_method": "hist",
            "max_bin": s.bins,
            "max_depth": depth,
            "eta": s.learning_rate,
            "colsample_bynode": s.columns,
            "min_child_weight": s.floor,
            "num_target": s.members,
            "base_score": float(np.average(labels, weights=score + s.floor)),
            "seed": s.seed,
            "nthread": s.threads,
        }
        booster = xgboost.Booster(parameters, [data])
        for turn in range(rounds):  # xgboost.train also compares the features' names in each
            margin = booster.predict(
                data, output_margin=True, training=True, validate_features=False
            )
            first, second = self._gradient(margin.reshape(seen.shape), labels)
            booster.boost(data, turn, grad=first * seen, hess=second * seen)
        return booster


def _predict(booster: xgboost.Booster, matrix: np.ndarray) -> np.ndarray:
    """Return every member's scores, float64 [rows, members]."""
    return booster.inplace_predict(matrix).reshape(len(matrix), -1).astype(np.float64)


def _varied(matrix: np.ndarray) -> np.ndarray:
    """Return the columns that differ among rows, bool. The others teach nothing and cost time."""
    known = np.isfinite(matrix)
    first = matrix[0]
    same = (matrix == first) | (~known & ~known[0])
    varied: np.ndarray = ~same.all(axis=0)
    if not varied.any():
        varied[0] = True  # trees need something to look at, if only in vain
    return varied


def _by_others(members: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Return the mean score of each row by the ``members`` that have not seen it, NaN if all
    have."""
    others = np.where(seen, 0.0, members).sum(axis=1)
    with np.errstate(invalid="ignore"):
        unseen: np.ndarray = others / np.count_nonzero(~seen, axis=1)
    return unseen


def _error_scale(members: np.ndarray, score: np.ndarray, unseen: np.ndarray) -> float:
    """Root mean square error on unseen rows over that of the members' disagreement."""
    rows = np.isfinite(unseen)
    if not rows.any():
        return 1.0
    error = np.sqrt(np.mean((unseen[rows] - score[rows]) ** 2))
    spread = np.sqrt(np.mean(members[rows].var(axis=1)))
    return float(np.clip(error / max(spread, 1e-9), 1.0, 20.0))
