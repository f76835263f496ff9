"""Evolutionary search under a cost model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from costmodel.interfaces import CostModel, Example, Predictor
from scheduler.history import History, distinct
from scheduler.search import Proposed
from spaces.schedule import Schedule
from spaces.space import Population, Space

JOLTS = 1.5  # mean number of decisions by which a child differs from its parents' mix


@dataclass(frozen=True)
class Evolution:
    """The settings of an :class:`EvolutionarySearch`.

    ``immigrants`` random schedules enter each ask, ``parents`` of the best survive each of
    ``generations``, with ``children`` each. Of the schedules asked for, the share
    ``neighbours`` comes from those around the ``leaders`` best measured ones and the share
    ``random`` is drawn blindly; the model's choice among the evolved fills the rest.
    ``diversity`` is what likeness to a schedule already chosen costs, in units of the score;
    ``opening_diversity`` the same as long as nothing is measured. After ``caution`` outcomes the
    model weighs as much as the prior; what it is unsure of counts as ``optimism`` standard
    deviations better than it says (an upper confidence bound: Auer, JMLR 3, 2002).
    """

    immigrants: int = 2048
    parents: int = 64
    children: int = 128
    generations: int = 3
    leaders: int = 3
    neighbours: float = 0.4
    random: float = 1 / 16
    diversity: float = 0.2
    opening_diversity: float = 0.5
    caution: float = 8.0
    optimism: float = 0.4


ORIGINS = ("leader", "starter", "immigrant", "child", "neighbour")
"""Where rows of a population are from, see :class:`scheduler.search.Proposed`. Leaders are measured
already, and never proposed."""

WARM = Evolution(opening_diversity=0.2, caution=32.0, random=0.2)
"""The settings where the prior has learned from other shapes: it is worth more than a guess, and
what it does not know of has to be drawn blindly."""


class EvolutionarySearch:
    """A population evolved under the predictions of a cost model; a ``scheduler.search.Search``.

    Before anything is measured ``prior`` ranks the candidates, so the first batch is already
    good; then ``model`` is trained from scratch on all outcomes whenever there are new ones, and
    its predictions are mixed with the prior's, more and more its own as outcomes grow. What is
    asked depends on nothing but the seed, the schedules taken and the outcomes told. ``starters``
    are schedules thought to be good, which enter every evolution.
    """

    def __init__(
        self,
        space: Space,
        model: CostModel,
        prior: Predictor,
        seed: int = 0,
        evolution: Evolution | None = None,
        starters: Sequence[Schedule] = (),
    ) -> None:
        self._space = space
        self._model = model
        self._prior = prior
        self._evolution = evolution or Evolution()
        self._history = History(space, seed)
        self._choices = _choices(space)
        self._starters = space.rows(starters)
        self._stale = False
        self._trust = 0.0

    def ask(self, count: int) -> list[Proposed]:
        """At most ``count`` new schedules, the most promising first."""
        generator = self._history.generator()
        self._train()
        choice = self._evolution
        leaders = self._history.best(choice.leaders)
        diversity = choice.diversity if len(leaders) else choice.opening_diversity
        blind = _share(choice.random, count, generator)
        asked: list[_Pool] = []
        if len(leaders):
            around = self._rated(self._space.neighbours(leaders, generator), "neighbour")
            near = min(_share(choice.neighbours, count, generator), count - blind)
            asked.append(self._choose(around, asked, near, diversity))
        evolved = self._evolve(generator, leaders)
        more = count - blind - sum(map(len, asked))
        asked.append(self._choose(evolved, asked, more, diversity))
        proposed = [proposal for pool in asked for proposal in pool.proposed(self._space)]
        drawn = self._history.take(self._history.sample(generator, count - len(proposed)))
        return proposed + [Proposed(schedule, "random") for schedule in drawn]

    def tell(self, results: Sequence[tuple[Schedule, float | None]]) -> None:
        """Outcomes, in any order; the model learns them at the next ask."""
        self._stale |= self._history.tell(results)

    def _train(self) -> None:
        told = self._history.told()
        if self._stale and any(latency is not None for _, latency in told):
            workload, target = self._space.workload, self._space.target
            self._model.fit([Example(workload, target, s, latency) for s, latency in told])
            self._trust = len(told) / (len(told) + self._evolution.caution)
            self._stale = False

    def _rated(self, rows: Population, origin: str) -> _Pool:
        """Rows with their predicted quality: the prior's and the model's, weighted by how much
        was measured."""
        mean, spread = self._prior.predict(self._space, rows)
        score = mean
        if (trust := self._trust) > 0:
            learnt, unsure = self._model.predict(self._space, rows)
            hoped = learnt + self._evolution.optimism * unsure
            score = (1.0 - trust) * mean + trust * hoped
            mean = (1.0 - trust) * mean + trust * learnt
            spread = (1.0 - trust) * spread + trust * unsure
        return _Pool(rows, score, mean, spread, np.full(len(rows), ORIGINS.index(origin)))

    def _evolve(self, generator: np.random.Generator, leaders: Population) -> _Pool:
        """Promising rows: random ones, the starters and the leaders, then generations of their
        children."""
        choice = self._evolution
        immigrants = self._space.sample(generator, choice.immigrants)
        founders = [(leaders, "leader"), (self._starters, "starter"), (immigrants, "immigrant")]
        population = _joined([self._rated(rows, origin) for rows, origin in founders])
        for _ in range(choice.generations):
            best = population.best(choice.parents).rows
            first, second = generator.integers(0, len(best), (2, choice.children))
            children = self._space.crossover(best[first], best[second], generator)
            children = self._space.complete(self._jolt(children, generator), generator)
            population = _joined([population, self._rated(children, "child")])
        return population

    def _choose(self, pool: _Pool, before: Sequence[_Pool], count: int, diversity: float) -> _Pool:
        """At most ``count`` free rows of ``pool``, from now on taken.

        Each is the best by score less ``diversity`` times its likeness to the nearest row chosen
        before (maximal marginal relevance; Carbonell and Goldstein, SIGIR 1998).
        """
        pool = pool.at(self._history.fresh(pool.rows))
        score, likeness = pool.score.copy(), np.zeros(len(pool))
        for row in (row for chosen in before for row in chosen.rows):
            likeness = np.maximum(likeness, self._likeness(pool.rows, row))
        chosen: list[int] = []
        for _ in range(min(count, len(pool))):
            best = int(np.argmax(score - diversity * likeness))
            chosen.append(best)
            likeness = np.maximum(likeness, self._likeness(pool.rows, pool.rows[best]))
            score[best] = -np.inf
        self._history.take(pool.rows[chosen])
        return pool.at(chosen)

    def _likeness(self, pool: Population, row: np.ndarray) -> np.ndarray:
        """Share of equal decisions: 1.0 for the same row, 0.0 for another template."""
        choices = self._choices[row[0]]
        share: np.ndarray = ((pool == row) & choices).sum(axis=1) / choices.sum()
        return share * (pool[:, 0] == row[0])

    def _jolt(self, population: Population, generator: np.random.Generator) -> Population:
        """Wishes for :meth:`Space.complete`: few decisions of each row one step up or down, where
        a step below the first value leaves the choice open."""
        choices = self._choices[population[:, 0]]
        hit = generator.random(population.shape) < JOLTS / choices.sum(axis=1, keepdims=True)
        hit &= choices
        hit[:, 0] = False
        return np.where(hit, population + generator.choice([-1, 1], population.shape), population)


@dataclass(frozen=True)
class _Pool:
    """Rows to choose from. One entry for each: the ``score`` that ranks it, the ``mean`` and the
    ``spread`` of its predicted quality, and its place in ``ORIGINS``."""

    rows: Population
    score: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    origin: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, places: Sequence[int] | np.ndarray) -> _Pool:
        """The rows at these places, in this order."""
        i = np.asarray(places, dtype=int)
        return _Pool(self.rows[i], self.score[i], self.mean[i], self.spread[i], self.origin[i])

    def best(self, count: int) -> _Pool:
        """The ``count`` best, best first."""
        return self.at(np.argsort(-self.score, kind="stable")[:count])

    def proposed(self, space: Space) -> list[Proposed]:
        """What is asked for."""
        rest = zip(self.origin, self.mean.tolist(), self.spread.tolist(), strict=True)
        return [
            Proposed(space.schedule(row), ORIGINS[origin], mean, spread)
            for row, (origin, mean, spread) in zip(self.rows, rest, strict=True)
        ]


def _joined(pools: Sequence[_Pool]) -> _Pool:
    """The distinct rows of pools, where they first stand."""
    joined = _Pool(
        np.concatenate([pool.rows for pool in pools]),
        np.concatenate([pool.score for pool in pools]),
        np.concatenate([pool.mean for pool in pools]),
        np.concatenate([pool.spread for pool in pools]),
        np.concatenate([pool.origin for pool in pools]),
    )
    return joined.at(distinct(joined.rows))


def _choices(space: Space) -> np.ndarray:
    """Boolean matrix [templates, columns]: the template itself, and its own decisions that have
    more than one value."""
    choices = np.zeros((len(space.templates), space.width), dtype=bool)
    choices[:, 0] = True
    column = 1
    for i, template in enumerate(space.templates.values()):
        for decision in template.decisions:
            choices[i, column] = len(decision.values) > 1
            column += 1
    return choices


def _share(fraction: float, count: int, generator: np.random.Generator) -> int:
    """``fraction`` of ``count``, rounded up or down at random so that the mean is exact."""
    return int(fraction * count + generator.random())
