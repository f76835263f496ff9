"""Defaults of a tuning run: its search, its executor, and its estimates of a kernel."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tilewright.costmodel.dataset import SpaceFor
from tilewright.costmodel.interfaces import CostModel, Learner, Predictor
from tilewright.costmodel.library import load_xgboost
from tilewright.measure.interfaces import Executor
from tilewright.scheduler.machine import roofline
from tilewright.scheduler.strategies.search import Search
from tilewright.scheduler.tuning.pace import LEAST_BATCH, LEAST_BATCHES, Pace, Pacing
from tilewright.scheduler.tuning.transfer import Transfer
from tilewright.spaces.backends import backend
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.errors import InputError
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target

if TYPE_CHECKING:
    from tilewright.costmodel.predictors.blend import Blend


def load_early() -> None:
    """Begin to load what models learn with: a second of imports, needed after the first batch."""
    threading.Thread(target=_load, daemon=True).start()


def _load() -> None:
    with suppress(InputError):  # the search will say so
        load_xgboost()


def default_search(
    space: Space, seed: int, known: Transfer | None = None, model: CostModel | None = None
) -> Search:
    """Return the default search: evolution under a model that learns.

    Until the model has learned, the prior ranks: ``model`` if given, else a model of ``known``
    other shapes, else the roofline. With known shapes, a search without prior knowledge gives a
    second opinion.
    """
    from tilewright.scheduler.strategies.evolutionary import (
        OF_OTHER_SHAPES,
        WARM,
        EvolutionarySearch,
    )
    from tilewright.scheduler.strategies.second_opinion import SECOND, SecondOpinion

    guess = roofline(space.target, only(space))
    prior: Predictor | None = model or (known.model if known else None)
    if prior is None:
        blend = blended_model(space)
        return EvolutionarySearch(space, blend, guess, seed, far=blend.trees)
    starters = known.starters if known else ()
    settings = WARM if known and known.same_shape else OF_OTHER_SHAPES
    warm = EvolutionarySearch(space, learned_model(space), prior, seed, settings, starters)

    def second(avoided: Sequence[Schedule]) -> Search:
        model = learned_model(space, prior)
        return EvolutionarySearch(space, model, guess, seed, SECOND, avoided=avoided)

    return SecondOpinion(space, warm, second)


def learned_model(space: Space, base: Predictor | None = None) -> Learner:
    """Return a model that learns from measurements of ``space`` alone. The score by ``base`` is one
    of its features."""
    from tilewright.costmodel.model import Settings, XGBoostModel
    from tilewright.costmodel.stacked import StackedModel

    if base:
        return StackedModel(base, Settings(), only(space))
    return XGBoostModel(space_for=only(space))


def blended_model(space: Space) -> Blend:
    """Return a learned model for a space without relatives: trees, blended with a Gaussian
    process."""
    from tilewright.costmodel.predictors.blend import Blend

    return Blend(learned_model(space))


def only(space: Space) -> SpaceFor:
    """The space of every workload is ``space``."""
    return lambda workload, target: space


def expected_latency(space: Space) -> float:
    """Return the seconds of one call of a good schedule, by the roofline; 0 if that knows
    nothing."""
    latency = roofline(space.target).latency(space, space.sample(np.random.default_rng(0), 64))
    known = latency[np.isfinite(latency)]
    return float(known.min()) if len(known) else 0.0


def default_pace(
    space: Space, batch: int, trials: int, seconds: float, rivals: float = 0.0
) -> Pace:
    """Say how to share out the trials and seconds that there are for ``space``, at most ``batch``
    candidates at a time. Those that are timed beside the finalists start in ``rivals`` seconds."""
    pacing: Pacing = backend(space.target.kind).part("pacing")
    most = min(batch, max(LEAST_BATCH, trials // LEAST_BATCHES), max(1, trials))
    usual = pacing.expected(space.workload, expected_latency(space))
    return Pace(seconds, replace(usual, rivals=rivals), most, pacing.comparison)


def build_helpers(target: Target) -> float:
    """Build the programs that measure kernels of ``target`` here, and return the seconds.

    They are built once. The seconds do not count for a run: it may have ten, and a busy machine
    takes as many for that.
    """
    if not isinstance(target, CpuTarget):
        return 0.0
    from tilewright.measure.cpu.binaries import build_helpers

    return build_helpers()


def local_executor(target: Target) -> Executor:
    """Return an executor of this machine."""
    from tilewright.measure.executor import LocalExecutor

    return LocalExecutor(target)
