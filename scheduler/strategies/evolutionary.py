"""Evolutionary search under a cost model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from tilewright.costmodel.dataset import Group
from tilewright.costmodel.interfaces import Learner, Predictor
from tilewright.scheduler.strategies.history import History, distinct
from tilewright.scheduler.strategies.pool import ORIGINS, Pool, joined
from tilewright.scheduler.strategies.search import Proposed
from tilewright.scheduler.strategies.similarity import Similarity
from tilewright.scheduler.strategies.trust import Forecasts, Trust, trust
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import NEAR_ATTEMPTS, Population, Space

MUTATIONS = 1.5  # mean number of decisions by which a child differs from its parents' mix
GROWTH = 1.125  # times as many outcomes as the model was trained on, before it is trained anew


@dataclass(frozen=True)
class Evolution:
    """The settings of an :class:`EvolutionarySearch`.

    ``immigrants`` random schedules enter each ask, drawn anew whenever ``renewal`` more are taken.
    The ``parents`` best survive each of ``generations``, with ``children`` each.

    Of the schedules asked for, the share ``neighbours`` comes from around the ``leaders`` best
    measured ones. The share ``random`` is drawn at random, and the model chooses the rest among the
    evolved.

    While nothing is measured, the share ``starters`` comes first. Of a batch beyond ``guesses``,
    the share ``opening_random`` is drawn at random too, because a wrong prior is wrong about all.

    ``diversity`` is the penalty for likeness to a schedule already chosen, in units of the score;
    ``opening_diversity`` is the same while nothing is measured.

    After ``caution`` outcomes the model weighs as much as the prior, unless the outcomes show which
    predicts better. Its uncertainty counts as ``optimism`` standard deviations in favour (an upper
    confidence bound: Auer, JMLR 3, 2002). Its members may agree where none of them knows anything.
    So a schedule loses up to ``doubt`` the less it is like the nearest one learned from. It loses
    up to ``avoidance`` the more it is like the nearest avoided one, until ``avoidance_ends``
    outcomes are known.

    With ``near_by_model`` the model alone judges neighbours as soon as it has learned. The prior
    chose the leaders' region; only outcomes tell what differs within it.
    """

    immigrants: int = 2048
    renewal: int = 64
    parents: int = 64
    children: int = 128
    generations: int = 3
    leaders: int = 3
    neighbours: float = 0.4
    random: float = 1 / 16
    starters: float = 1 / 4
    guesses: int = 16
    opening_random: float = 0.5
    diversity: float = 0.2
    opening_diversity: float = 0.5
    caution: float = 8.0
    optimism: float = 0.4
    doubt: float = 0.3
    avoidance: float = 0.5
    avoidance_ends: int = 16
    near_by_model: bool = False


WARM = Evolution(
    immigrants=4096,
    opening_diversity=0.2,
    caution=32.0,
    random=0.1,
    opening_random=0.0,
    doubt=0.0,
)
"""The settings where the prior has learned from what was measured elsewhere: it is worth more than
a guess, and what it does not know of has to be drawn blindly."""

OF_OTHER_SHAPES = replace(WARM, near_by_model=True)
"""The same where that was of other shapes alone: how neighbours differ depends on the shape."""


class EvolutionarySearch:
    """A population evolved under the predictions of a cost model; a
    ``scheduler.strategies.search.Search``.

    Before anything is measured ``prior`` ranks the candidates, so the first batch is already good.
    Then ``model`` is trained from scratch on all outcomes whenever they have grown by an eighth, so
    all its training takes about nine times as long as the last. Its predictions are mixed with the
    prior's as far as the outcomes prove either right (``scheduler.strategies.trust``).

    An ask depends on nothing but the seed, the schedules taken, the outcomes told, and how many of
    them were told at each ask. ``starters`` are schedules thought to be good, the best first: a
    first batch tries some of them, and they enter every evolution. At first the search keeps away
    from ``avoided`` schedules. If there is a model ``far``, it judges evolved schedules, and
    ``model`` only neighbours of the fastest.
    """

    def __init__(
        self,
        space: Space,
        model: Learner,
        prior: Predictor,
        seed: int = 0,
        evolution: Evolution | None = None,
        starters: Sequence[Schedule] = (),
        avoided: Sequence[Schedule] = (),
        far: Predictor | None = None,
    ) -> None:
        self._space = space
        self._model, self._far = model, far or model
        self._prior = prior
        self._evolution = evolution or Evolution()
        self._history = History(space, seed)
        self._likeness = Similarity(space)
        self._opening_likeness = Similarity(space, by_steps=True)
        self._learned = space.rows([])  # what the model was trained on
        self._starters = space.rows(starters)
        self._avoided = space.rows(avoided)
        self._due = 1.0  # so many news, and the model is trained
        self._trust = Trust()
        self._forecasts = Forecasts(space, prior)
        self._immigrants = lru_cache(maxsize=1)(self._draw_immigrants)
        self._neighbours = lru_cache(maxsize=1)(self._draw_neighbours)

    @property
    def history(self) -> History:
        """The rows that were asked for and told. Rows that others take here are not asked for."""
        return self._history

    def expected(self, rows: Population) -> np.ndarray:
        """Return the prior's forecasts for ``rows`` (all told before), relative to its best
        forecast."""
        return self._forecasts.of(rows) / self._forecasts.best

    def ask(self, count: int) -> list[Proposed]:
        """Return at most ``count`` new schedules, the most promising first."""
        generator = self._history.generator()
        self._train()
        choice = self._evolution
        leaders = self._history.best(choice.leaders)
        diversity = choice.diversity if len(leaders) else choice.opening_diversity
        blind = _share(choice.random, count, generator)
        if not len(leaders):
            blind = max(blind, int(choice.opening_random * (count - choice.guesses)))
        known = self._founders(leaders)
        share = choice.neighbours if len(leaders) else choice.starters
        near = min(_share(share, count, generator), count - blind)
        first = self._around(leaders) if len(leaders) else self._untried(known, near)
        asked = [self._choose(first, [], near, diversity)]
        evolved = self._evolve(generator, known.distinct())
        asked.append(self._choose(evolved, asked, count - blind - len(asked[0]), diversity))
        proposed = [proposal for pool in asked for proposal in pool.proposed(self._space)]
        drawn = self._history.take(self._history.sample(generator, count - len(proposed)))
        return proposed + [Proposed(schedule, "random") for schedule in drawn]

    def tell(self, results: Sequence[tuple[Schedule, float | None]]) -> None:
        """Take outcomes, in any order; the model learns them at one of the next asks."""
        self._forecasts.note([schedule for schedule, _ in results])
        self._history.tell(results)

    def _train(self) -> None:
        if self._history.news < self._due or not len(self._history.best(1)):
            return
        group = Group(self._space, *self._history.told())
        self._model.fit_groups([group])
        self._learned = group.population
        said = self._forecasts.of(group.population)
        self._trust = trust(group.score, said, self._model.unseen, self._evolution.caution)
        self._due = max(self._history.news + 1, GROWTH * self._history.news)

    def _founders(self, leaders: Population) -> Pool:
        """Return the first population: leaders, starters and random rows."""
        immigrants = self._immigrants(len(self._history) // self._evolution.renewal)
        parts = [leaders, self._starters, immigrants]
        return self._rated(parts, ORIGINS[:3], self._far, self._trust)

    def _around(self, leaders: Population) -> Pool:
        """Return the leaders' neighbours."""
        rows = self._neighbours(tuple(map(tuple, leaders.tolist())))
        alone = self._evolution.near_by_model and len(self._model.unseen) > 0
        trust = Trust(share=1.0) if alone else self._trust
        return self._rated([rows], ["neighbour"], self._model, trust)

    def _untried(self, known: Pool, count: int) -> Pool:
        """Return the first ``count`` starters among the founders that are not taken."""
        starters = known.at(np.flatnonzero(known.origin == ORIGINS.index("starter")))
        return starters.at(self._history.fresh(starters.rows)[:count])

    def _draw_immigrants(self, epoch: int) -> Population:
        generator = np.random.default_rng([self._history.seed, epoch, 1])
        rows = self._space.sample(generator, self._evolution.immigrants)
        return rows[distinct(rows)]

    def _draw_neighbours(self, leaders: tuple[tuple[int, ...], ...]) -> Population:
        rows = np.array(leaders, dtype=np.int32)
        generator = np.random.default_rng([self._history.seed, 2, *rows.ravel()])
        return self._space.neighbours(rows, generator)

    def _rated(
        self, parts: Sequence[Population], origins: Sequence[str], by: Predictor, trust: Trust
    ) -> Pool:
        """Rate rows by the prior and a model, each as far as it is trusted."""
        rows = np.concatenate(parts)
        origin = np.repeat([ORIGINS.index(name) for name in origins], [*map(len, parts)])
        mean, spread = trust.prior(*self._prior.predict(self._space, rows))
        score = mean
        if trust.share > 0:
            learnt, unsure = by.predict(self._space, rows)
            hoped = learnt + self._evolution.optimism * unsure
            score, mean = trust.mixed(mean, hoped), trust.mixed(mean, learnt)
            spread = trust.mixed(spread, unsure)
            score -= self._evolution.doubt * self._likeness.nearest(rows, self._learned)
        if self._history.news < self._evolution.avoidance_ends:
            score = score - self._evolution.avoidance * self._likeness.nearest(rows, self._avoided)
        return Pool(rows, score, mean, spread, origin)

    def _evolve(self, generator: np.random.Generator, population: Pool) -> Pool:
        """Evolve promising rows: the founders, and generations of their children."""
        choice = self._evolution
        for _ in range(choice.generations):
            best = population.best(choice.parents).rows
            first, second = generator.integers(0, len(best), (2, choice.children))
            wishes = self._space.mixed(best[first], best[second], generator)
            wishes = self._mutated(wishes, generator)
            children = self._space.complete(wishes, generator, attempts=NEAR_ATTEMPTS)
            rated = self._rated([children], ["child"], self._far, self._trust)
            population = joined([population, rated])
        return population

    def _choose(self, pool: Pool, before: Sequence[Pool], count: int, diversity: float) -> Pool:
        """Return at most ``count`` free rows of ``pool``, from now on taken.

        Each is the best by score less ``diversity`` times its likeness to the nearest row chosen
        before (maximal marginal relevance; Carbonell and Goldstein, SIGIR 1998), which is 1 at
        most: rows further behind need no look. As long as nothing is measured this counts the steps
        between values, so that an opening covers the space.
        """
        measured = len(self._history.best(1))
        alike = self._likeness if measured else self._opening_likeness
        pool = pool.at(self._history.fresh(pool.rows)).within(diversity, count)
        score, likeness = pool.score.copy(), np.zeros(len(pool))
        for row in (row for chosen in before for row in chosen.rows):
            likeness = np.maximum(likeness, alike.to(row, pool.rows))
        chosen: list[int] = []
        for _ in range(min(count, len(pool))):
            best = int(np.argmax(score - diversity * likeness))
            chosen.append(best)
            likeness = np.maximum(likeness, alike.to(pool.rows[best], pool.rows))
            score[best] = -np.inf
        self._history.take(pool.rows[chosen])
        return pool.at(chosen)

    def _mutated(self, wishes: Population, generator: np.random.Generator) -> Population:
        """Return the wishes for :meth:`Space.complete`: few decisions of each row one step up or
        down, where a step below the first value leaves the choice open."""
        choices = self._likeness.choices[wishes[:, 0]]
        hit = generator.random(wishes.shape) < MUTATIONS / choices.sum(axis=1, keepdims=True)
        hit &= choices
        hit[:, 0] = False
        return np.where(hit, wishes + generator.choice([-1, 1], wishes.shape), wishes)


def _share(fraction: float, count: int, generator: np.random.Generator) -> int:
    """Return ``fraction`` of ``count``, rounded up or down at random so that the mean is exact."""
    return int(fraction * count + generator.random())
