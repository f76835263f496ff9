"""Attribute the speed that a cost model predicts to what it knows of schedules, as a figure.

The model is fitted to the trials of one workload. Contributions are SHAP values, see
:mod:`costmodel.explaining.explanation`.
"""

from __future__ import annotations

import numpy as np

from tilewright.costmodel.explaining.explanation import Explanation, explain
from tilewright.costmodel.feature_names import describe
from tilewright.costmodel.model import XGBoostModel
from tilewright.scheduler.cli.text import counted
from tilewright.scheduler.explaining import in_words
from tilewright.scheduler.report.figure import Axis, Figure, Kind, Series
from tilewright.scheduler.report.material import Material

MOST_FEATURES = 10
MOST_EXPLAINED = 128  # schedules whose predictions are attributed: each takes half a millisecond


def contributions(material: Material) -> Figure:
    """Show how far each feature moves the predicted speed of a schedule, in the mean."""
    found, trials = _explained(material), counted(len(material.searched), "trial")
    moving = _moving(found) if found else []
    caption = f"of a model that is fitted to {trials}"
    if found is None:
        caption = f"too few for a model: {trials}"
    elif moving:
        first = describe(found.names[moving[0]]).meaning
        caption += f"; {first}: {in_words(found.direction(moving[0]), *WORDS)}"
    names = tuple(found.names[place] for place in moving) if found else ()
    values = tuple(float(found.importance[place]) for place in moving) if found else ()
    bars = Series("features", Kind.BARS, values, tuple(map(float, range(len(values)))))
    return Figure("model", TITLE, caption, AXIS, Axis("", names=names), (bars,))


TITLE = "What a model has learned from the trials"
AXIS = Axis("mean contribution to the predicted speed, of the best")
WORDS = "faster", "slower"


def _moving(found: Explanation) -> list[int]:
    """Return the features that move predictions most, the first of them."""
    moving = (place for place in map(int, found.order) if found.importance[place] > 0)
    return list(moving)[:MOST_FEATURES]


def _explained(material: Material) -> Explanation | None:
    """Return the contributions; None without a space, or with too few trials for trees."""
    group = material.group
    if group is None:
        return None
    model = XGBoostModel()
    model.fit_groups([group])
    if model.trained is None:
        return None
    order = np.random.default_rng(0).permutation(len(group.population))
    rows = group.population[np.sort(order[:MOST_EXPLAINED])]
    return explain(model, [(group.space, rows)])[0]
