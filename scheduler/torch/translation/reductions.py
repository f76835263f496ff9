"""Rules of reductions along dimensions: each result is a stage."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import fx

from tilewright.scheduler.torch.translation.axes import Dimension
from tilewright.scheduler.torch.translation.gap import Gap
from tilewright.scheduler.torch.translation.index import Index, Indices
from tilewright.scheduler.torch.translation.nodes import (
    arguments,
    dimension,
    dimensions,
    fake,
    name_of,
    shape,
)
from tilewright.scheduler.torch.translation.rules import Kind, reducing
from tilewright.scheduler.torch.translation.values import Compared, Value, condition, number

if TYPE_CHECKING:
    from tilewright.scheduler.torch.translation.program import Stage, Translation

REDUCERS = {
    "sum": "sum",
    "amax": "max",
    "amin": "min",
    "prod": "prod",
    "max": "max",
    "min": "min",
    "argmax": "argmax",
    "argmin": "argmin",
    "any": "max",
    "all": "min",
}
"""The reducer of the language that computes each operator's first result."""


def _reduced(node: fx.Node) -> tuple[fx.Node, tuple[int, ...], bool]:
    """Return the argument, the dimensions along which it is reduced, and whether these stay, with
    one element."""
    given = arguments(node)
    source = given.get("self", given.get("inp"))
    assert isinstance(source, fx.Node)
    along = given.get("dim", given.get("dims"))
    return source, dimensions(along, len(shape(source))), bool(given.get("keepdim", False))


def _kept(node: fx.Node) -> Iterator[tuple[Dimension, Dimension]]:
    """Yield the dimensions that are not reduced are those of the argument."""
    source, along, keeps = _reduced(node)
    kept = [place for place in range(len(shape(source))) if keeps or place not in along]
    for own, place in enumerate(kept):
        if place not in along:
            yield (node, own), (source, place)


@dataclass(frozen=True)
class _Reduction:
    """A reduction with an axis for each dimension of its argument, and its body."""

    axes: tuple[str | None, ...]
    over: tuple[str, ...]
    body: str
    count: int

    def text(self, reducer: str, body: str = "") -> str:
        """Return a reduction of this body, or of another one; without axes the body alone."""
        body = body or self.body
        return f"{reducer}[{', '.join(self.over)}]({body})" if self.over else body


def _reduction(translation: Translation, node: fx.Node, repeatable: bool = False) -> _Reduction:
    source, along, _ = _reduced(node)
    extents, taken = shape(source), list[str]()
    kept = [place for place in range(len(extents)) if place not in along]
    at: dict[int, Index] = {}
    for place in (*kept, *along):
        at[place] = translation.axes.index((source, place), taken)
    indices = [at[place] for place in range(len(extents))]
    with translation.guarded(False):
        if name_of(node) in ("any", "all"):
            body = number(condition(translation.value(source, indices)))
        else:
            body = (translation.repeatable if repeatable else translation.number)(source, indices)
    names = [at[place].atom for place in kept]
    over = [atom.text for place in along if (atom := at[place].atom)]
    axes = tuple(atom.text if atom else None for atom in names)
    return _Reduction(axes, tuple(over), body, math.prod(extents[place] for place in along))


def _element(translation: Translation, node: fx.Node, stage: Stage, indices: Indices) -> Value:
    """Return the element of a result at these indices, those of reduced dimensions left out."""
    _, along, keeps = _reduced(node)
    own = [index for place, index in enumerate(indices) if not keeps or place not in along]
    text = translation.element(stage, own)
    return Compared(f"{text} != 0") if fake(node).dtype is torch.bool else text


@reducing(
    Kind.REDUCTION, "sum", "amax", "amin", "prod", "argmax", "argmin", "any", "all", ties=_kept
)
def _plain(translation: Translation, node: fx.Node, indices: Indices, part: int) -> Value:
    stage = translation.known((node, "stage")) or _defined(
        translation, node, REDUCERS[name_of(node)], (node, "stage")
    )
    return _element(translation, node, stage, indices)


@reducing(Kind.REDUCTION, "max", "min", results=2, ties=_kept)
def _extreme(translation: Translation, node: fx.Node, indices: Indices, part: int) -> Value:
    """Return the value, and the place of the first one along the dimension."""
    if "other" in arguments(node):
        raise Gap(f"{name_of(node)} of two tensors")
    reducer, key = ("arg" if part else "") + REDUCERS[name_of(node)], (node, part)
    stage = translation.known(key) or _defined(translation, node, reducer, key)
    return _element(translation, node, stage, indices)


def _defined(translation: Translation, node: fx.Node, reducer: str, key: object) -> Stage:
    source, along, _ = _reduced(node)
    if reducer.startswith("arg") and len(along) == len(shape(source)) > 1:
        raise Gap(f"{reducer} over several dimensions")
    found = _reduction(translation, node)
    body = "0" if reducer.startswith("arg") and not found.over else found.text(reducer)
    return translation.stage(key, found.axes, body)


@reducing(Kind.REDUCTION, "mean", ties=_kept)
def _mean(translation: Translation, node: fx.Node, indices: Indices, part: int) -> Value:
    stage = translation.known((node, "stage")) or _average(translation, node, (node, "stage"))
    return _element(translation, node, stage, indices)


def _average(translation: Translation, node: fx.Node, key: object) -> Stage:
    found = _reduction(translation, node)
    return translation.stage(key, found.axes, f"{found.text('sum')} / {found.count}")


@reducing(Kind.REDUCTION, "var", ties=_kept)
def _var(translation: Translation, node: fx.Node, indices: Indices, part: int) -> Value:
    return _element(translation, node, _variance(translation, node), indices)


@reducing(Kind.REDUCTION, "var_mean", results=2, ties=_kept)
def _var_mean(translation: Translation, node: fx.Node, indices: Indices, part: int) -> Value:
    make = _mean_of if part else _variance
    return _element(translation, node, make(translation, node), indices)


def _mean_of(translation: Translation, node: fx.Node) -> Stage:
    key = (node, "mean")
    return translation.known(key) or _average(translation, node, key)


def _variance(translation: Translation, node: fx.Node) -> Stage:
    """Return the mean of squared deviations, corrected for the freedom that the mean takes."""
    key = (node, "variance")
    if stage := translation.known(key):
        return stage
    given = arguments(node)
    correction = given.get("correction")
    if correction is None:
        correction = 1 if given.get("unbiased", True) else 0
    mean = _mean_of(translation, node)
    found = _reduction(translation, node, repeatable=True)
    center = translation.element(
        mean, [Index() if a is None else translation.axes.value(a) for a in mean.axes]
    )
    deviation = f"({found.body} - {center})"
    squares = found.text("sum", f"{deviation} * {deviation}")
    return translation.stage(key, found.axes, f"{squares} / {max(found.count - correction, 0)}")


@reducing(Kind.REDUCTION, "linalg_vector_norm", ties=_kept)
def _norm(translation: Translation, node: fx.Node, indices: Indices, part: int) -> Value:
    order = arguments(node)["ord"]
    if order not in (1, 2):
        raise Gap(f"a vector norm of order {order}")
    stage = translation.known((node, "stage"))
    if stage is None:
        found = _reduction(translation, node, repeatable=True)
        squares = found.text("sum", f"{found.body} * {found.body}")
        body = f"sqrt({squares})" if order == 2 else found.text("sum", f"abs({found.body})")
        stage = translation.stage((node, "stage"), found.axes, body)
    return _element(translation, node, stage, indices)


def _all_dimensions(node: fx.Node) -> Iterator[tuple[Dimension, Dimension]]:
    source = arguments(node)["self"]
    for place in range(len(shape(source))):
        yield (node, place), (source, place)


SCANS = {"cumsum": "sum", "cumprod": "prod"}
EXTREME_SCANS = {"cummax": "max", "cummin": "min"}
"""The reducers of scans, of the second kind of which places are another result."""


@reducing(Kind.REDUCTION, *SCANS, ties=_all_dimensions)
def _scan(translation: Translation, node: fx.Node, indices: Indices, part: int) -> Value:
    return _running(translation, node, indices, SCANS[name_of(node)])


@reducing(Kind.REDUCTION, *EXTREME_SCANS, results=2, ties=_all_dimensions)
def _extreme_scan(translation: Translation, node: fx.Node, indices: Indices, part: int) -> Value:
    if part:
        raise Gap(f"the places that {name_of(node)} finds")
    return _running(translation, node, indices, EXTREME_SCANS[name_of(node)])


def _running(translation: Translation, node: fx.Node, indices: Indices, reducer: str) -> Value:
    """Return a reduction of all elements up to each one."""
    stage = translation.known((node, "stage"))
    if stage is None:
        given = arguments(node)
        place = dimension(given["dim"], len(indices))
        axes, at = translation.whole(node)
        last = axes[place]
        if last is None:
            return translation.number(given["self"], indices)
        term = translation.axes.new(shape(given["self"])[place])
        at[place] = translation.axes.value(term)
        with translation.guarded(False):
            text = translation.number(given["self"], at)
        body = f"{reducer}[{term}: {term} <= {last}]({text})"
        stage = translation.stage((node, "stage"), axes, body)
    return translation.element(stage, indices)
