"""A picture of which features matter to a model: one point a schedule and feature."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from textwrap import fill

import numpy as np

from tilewright.costmodel.explaining.explanation import Explanation
from tilewright.scheduler.extras import extra
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.validation.files import check_place, write_whole

KINDS = (".svg", ".png")
MOST_FEATURES = 20
TITLE_WIDTH = 90  # characters of a line
SPREAD = 0.3  # how far points of one feature lie above and below its line


def check_plot(path: Path) -> None:
    """Raise :class:`InputError` where no picture can be written to ``path``."""
    if path.suffix.lower() not in KINDS:
        raise InputError(f"plot {shown(str(path))} is neither {' nor '.join(KINDS)}")
    check_place(path, "a plot")
    if not path.parent.is_dir():
        raise InputError(f"cannot write plot {path}: {path.parent} is no folder")
    extra("matplotlib", "plot", "--plot")


def plot_explanation(found: Explanation, path: Path, title: str) -> None:
    """Write the contributions of the most important features to ``path``; what was there before is
    replaced as a whole. Colours tell small values of a feature (blue) from large ones (red)."""
    matplotlib = extra("matplotlib", "plot", "--plot")
    figures = extra("matplotlib.figure", "plot", "--plot")
    order = found.order[:MOST_FEATURES]
    figure = figures.Figure(figsize=(9, 1.2 + 0.3 * len(order)), layout="constrained")
    axes = figure.subplots()
    for line, feature in enumerate(order):
        _strip(axes, found, int(feature), len(order) - 1 - line)
    axes.set_yticks(range(len(order)), [found.names[i] for i in order[::-1]])
    axes.axvline(0.0, color="grey", linewidth=0.8)
    axes.set_xlabel("contribution to the predicted score (best latency over latency)")
    axes.set_title(fill(title, TITLE_WIDTH), fontsize="medium", parse_math=False)
    picture = BytesIO()
    kind = path.suffix.lower()[1:]
    with matplotlib.rc_context({"svg.hashsalt": "tilewright"}):
        figure.savefig(picture, format=kind, metadata={"Date": None} if kind == "svg" else None)
    try:
        write_whole(path, picture.getvalue())
    except OSError as error:
        raise InputError(f"cannot write plot {path}: {error.strerror}") from None


def _strip(axes: object, found: Explanation, feature: int, height: float) -> None:
    values = found.values[:, feature]
    known = np.isfinite(values)
    rank = np.full(len(values), 0.5)
    if known.any():
        low, high = values[known].min(), values[known].max()
        rank[known] = (values[known] - low) / max(high - low, 1e-12)
    jitter = np.random.default_rng(feature).uniform(-SPREAD, SPREAD, len(values))
    axes.scatter(  # type: ignore[attr-defined]
        found.contributions[:, feature], height + jitter, c=rank, cmap="coolwarm", s=5, alpha=0.7
    )
