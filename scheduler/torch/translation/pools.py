"""Rules of pools: the greatest or the mean value of each window of an image."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

from torch import fx

from tilewright.scheduler.torch.translation.axes import Dimension
from tilewright.scheduler.torch.translation.gap import Gap
from tilewright.scheduler.torch.translation.index import Index, Indices
from tilewright.scheduler.torch.translation.nodes import arguments, shape
from tilewright.scheduler.torch.translation.rules import Kind, reducing
from tilewright.scheduler.torch.translation.values import Value

if TYPE_CHECKING:
    from tilewright.scheduler.torch.translation.program import Translation


def _ties(node: fx.Node) -> list[tuple[Dimension, Dimension]]:
    """Return the dimensions before those of the image."""
    source = arguments(node)["self"]
    return [((node, place), (source, place)) for place in range(len(shape(source)) - _count(node))]


def _count(node: fx.Node) -> int:
    """Return the dimensions of the image."""
    given = arguments(node)
    size = given["kernel_size"]
    if isinstance(size, list | tuple) and len(size) > 1:
        return len(size)
    (digit,) = {c for c in str(node.target) if c in "123"} or {"2"}
    return int(digit)


def _each(given: Any, default: list[int], count: int) -> list[int]:
    """Return a number for each dimension of the image."""
    several = list(given) if isinstance(given, list | tuple) else [given]
    return (several * count if len(several) == 1 else several) or default


MAXIMA = ("max_pool2d_with_indices", "max_pool3d_with_indices")


@reducing(Kind.REDUCTION, *MAXIMA, "_low_memory_max_pool_with_offsets", ties=_ties)
def _max_pool(translation: Translation, node: fx.Node, indices: Indices, part: int) -> Value:
    def body(over: str, text: str, size: list[int]) -> str:
        return f"max[{over}]({text})" if over else text

    return _pooled(translation, node, indices, -math.inf, body)


@reducing(Kind.REDUCTION, "avg_pool1d", "avg_pool2d", "avg_pool3d", ties=_ties)
def _mean_pool(translation: Translation, node: fx.Node, indices: Indices, part: int) -> Value:
    given = arguments(node)
    size = _each(given["kernel_size"], [1], _count(node))
    padded = any(_each(given["padding"], [0], len(size)))
    if (padded and not given["count_include_pad"]) or given["ceil_mode"]:
        raise Gap("a mean of windows of different sizes")
    count = given.get("divisor_override") or prod(size)

    def body(over: str, text: str, size: list[int]) -> str:
        return f"sum[{over}]({text}) / {count}" if over else f"{text} / {count}"

    return _pooled(translation, node, indices, 0.0, body)


def _pooled(
    translation: Translation,
    node: fx.Node,
    indices: Indices,
    fill: float,
    body: Callable[[str, str, list[int]], str],
) -> Value:
    stage = translation.known((node, "stage"))
    if stage is None:
        given, count = arguments(node), _count(node)
        size = _each(given["kernel_size"], [1] * count, count)
        steps = _each(given["stride"], size, count)
        padding = _each(given["padding"], [0] * count, count)
        dilation = _each(given.get("dilation", 1), [1] * count, count)
        axes, at = translation.whole(node)
        over: list[str] = []
        for place in range(count):
            here = len(at) - count + place
            tap = Index()
            if size[place] > 1:
                over.append(translation.axes.new(size[place]))
                tap = translation.axes.value(over[-1])
            at[here] = at[here] * steps[place] + tap * dilation[place] + -padding[place]
        with translation.guarded(False):
            text = translation.padded(given["self"], at, fill)
        stage = translation.stage((node, "stage"), axes, body(", ".join(over), text, size))
    return translation.element(stage, indices)
