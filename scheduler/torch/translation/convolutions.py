"""The rule of convolutions, transposed ones among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import fx

from tilewright.scheduler.torch.translation.axes import Dimension
from tilewright.scheduler.torch.translation.index import Index, Indices
from tilewright.scheduler.torch.translation.nodes import arguments, shape
from tilewright.scheduler.torch.translation.rules import Kind, reducing
from tilewright.scheduler.torch.translation.values import Value

if TYPE_CHECKING:
    from tilewright.scheduler.torch.translation.program import Placed, Translation


@dataclass(frozen=True)
class Convolution:
    """The arguments of a convolution: ``steps``, ``padding`` and ``dilation`` for each dimension
    of the image."""

    image: fx.Node
    weight: fx.Node
    bias: fx.Node | None
    steps: Sequence[int]
    padding: Sequence[int]
    dilation: Sequence[int]
    transposed: bool
    groups: int

    @classmethod
    def of(cls, node: fx.Node) -> Convolution:
        """Read them from a node."""
        given = arguments(node)
        count = len(shape(given["input"])) - 2
        return cls(
            given["input"],
            given["weight"],
            given["bias"],
            _each(given["stride"], count),
            _each(given["padding"], count),
            _each(given["dilation"], count),
            given["transposed"],
            given["groups"],
        )


def _each(given: Sequence[int], count: int) -> list[int]:
    return list(given) * count if len(given) == 1 else list(given)


def _ties(node: fx.Node) -> list[tuple[Dimension, Dimension]]:
    """Images and channels; the places of a window are no loops of the image."""
    found = Convolution.of(node)
    channels = 1 if found.transposed else 0
    weights = [((node, 1), (found.weight, channels))] if found.groups == 1 else []
    return [((node, 0), (found.image, 0)), *weights]


@reducing(Kind.PRODUCT, "convolution", ties=_ties)
def _convolution(translation: Translation, node: fx.Node, indices: Indices, part: int) -> Value:
    found, place = Convolution.of(node), translation.placed(node, indices)
    stage = translation.known(place.key)
    if stage is None:
        with translation.guarded(False):
            body = _body(translation, node, found, place)
        stage = translation.stage(place.key, place.axes, body)
    text = translation.element(stage, place.read)
    if found.bias is None:
        return text
    return f"({text} + {translation.number(found.bias, [indices[1]])})"


def _body(translation: Translation, node: fx.Node, found: Convolution, place: Placed) -> str:
    """Return the sum over channels and taps."""
    extents, over = shape(found.weight), list[str]()

    def summed(extent: int) -> Index:
        if extent == 1:
            return Index()
        over.append(translation.axes.new(extent))
        return translation.axes.value(over[-1])

    image, channel, *points = place.computed
    inner = extents[0] // found.groups if found.transposed else extents[1]
    outer = shape(node)[1] // found.groups
    depth = summed(inner)
    read = depth if found.groups == 1 else channel // outer * inner + depth
    taps = [summed(extent) for extent in extents[2:]]
    if found.transposed:
        text = _spread(translation, found, [image, read, *points], taps)
        weight = [read, channel % outer, *taps]
    else:
        at = [
            point * step + tap * dilation + -padding
            for point, tap, step, dilation, padding in zip(
                points, taps, found.steps, found.dilation, found.padding, strict=True
            )
        ]
        text = translation.padded(found.image, [image, read, *at], 0.0)
        weight = [channel, depth, *taps]
    body = f"{text} * {translation.number(found.weight, weight)}"
    return f"sum[{', '.join(over)}]({body})" if over else body


def _spread(translation: Translation, found: Convolution, indices: Indices, taps: Indices) -> str:
    """Return the element that a tap of a transposed convolution reaches: it is 0 between the
    steps."""
    image, channel, *points = indices
    conditions, at = [], []
    for point, tap, step, dilation, padding in zip(
        points, taps, found.steps, found.dilation, found.padding, strict=True
    ):
        reached = point + tap * -dilation + padding
        if step != 1:
            conditions.append(f"({reached}) % {step} == 0")
        at.append(reached // step)
    text = translation.padded(found.image, [image, channel, *at], 0.0)
    return f"select({' and '.join(conditions)}, {text}, 0)" if conditions else text
