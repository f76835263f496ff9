"""A region of a graph as a program: the text, and the operands in its order."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import torch
from torch import fx

from tilewright.scheduler.torch.translation.arrays import Described, described, written
from tilewright.scheduler.torch.translation.axes import Axes
from tilewright.scheduler.torch.translation.folding import Lines, folded
from tilewright.scheduler.torch.translation.gap import Gap
from tilewright.scheduler.torch.translation.grids import grid_of, grids
from tilewright.scheduler.torch.translation.index import Index, Indices, borders, leaves, reshaped
from tilewright.scheduler.torch.translation.lines import Definition, entry, tidied
from tilewright.scheduler.torch.translation.nodes import called, fake, name_of, shape
from tilewright.scheduler.torch.translation.rules import Kind
from tilewright.scheduler.torch.translation.table import rule_of, seen_through, ties_of
from tilewright.scheduler.torch.translation.values import (
    LARGEST,
    Compared,
    Known,
    Value,
    chosen,
    number,
)
from tilewright.scheduler.torch.translation.whole_numbers import check_wrapping
from tilewright.spaces.derivation.spelling import in_one_spelling
from tilewright.spaces.language import program

_NAME = re.compile(r"\w+")
_ENTRY = re.compile(r"[\w.]+(\[[^\[\]]*\])?")
"""Text that may be repeated: a number, or one entry of an array."""


@dataclass(frozen=True)
class Stage:
    """A stage of the program; ``axes`` has None for a dimension of one element. If its node is
    written in the shape of a view, ``shapes`` are that of the node and that of the view."""

    name: str
    axes: tuple[str | None, ...]
    shapes: tuple[Sequence[int], Sequence[int]] | None = None


@dataclass(frozen=True)
class Placed:
    """A product's stage: its axes, the indices at which it is ``computed``, and those at which the
    stage is then ``read``."""

    key: Any
    axes: Sequence[str | None]
    computed: list[Index]
    read: list[Index]


def _broadcast(given: Any, indices: Indices) -> list[Index]:
    """Return the indices into an argument of those into what it is broadcast to."""
    if not isinstance(given, fx.Node):
        return []
    own = shape(given)
    part = indices[len(indices) - len(own) :]
    return [Index() if e == 1 else i for i, e in zip(part, own, strict=True)]


def _entry(name: str, indices: Indices, extents: Sequence[int], fill: float | None) -> str:
    """Return one element, dimensions of one element left out; ``fill`` beyond the borders, if
    given."""
    long = [place for place, extent in enumerate(extents) if extent != 1]
    at = [indices[place] for place in long]
    text = entry(name, at)
    if fill is None or not leaves(at, [extents[place] for place in long]):
        return text
    written = {math.inf: "inf", -math.inf: "-inf"}.get(fill, f"{fill:g}")
    return f"inside({text}, {written})"


@lru_cache(maxsize=1024)
def _spelt(text: str) -> str:
    """Return the text of a program whose conditions on axes are in one spelling."""
    if "select(" not in text:
        return text
    made = program(text)
    spelt = in_one_spelling(made)
    return text if spelt == made else spelt.text


class Translation:
    """The nodes of a region as a program whose outputs are the values of ``outputs``.

    ``operands`` maps the nodes that it reads to how each lies in memory, in the order in which
    they are met. ``conditions`` maps each line that bounds a reduction to the axis that it
    reduces. Raises :class:`Gap` for what cannot be said.
    """

    def __init__(self, nodes: Collection[fx.Node], outputs: Sequence[fx.Node]) -> None:
        self.nodes = frozenset(nodes)
        self.outputs = tuple(outputs)
        self.operands: dict[fx.Node, Described] = {}
        self.axes = Axes()
        self.conditions: dict[str, str] = {}
        self._stages: dict[Any, Stage] = {}
        self._lines: list[Definition] = []
        self._guarded = False
        for node in self.nodes:
            for one, other in ties_of(node):
                self.axes.tie(one, other)
        self._shared = self._read_often()
        self._grids = grids(self.nodes)
        results = [self._result(node) for node in self.outputs]
        self._lines, self._results = tidied(self._lines, results)
        self._check_conditions()
        used = {word for line in self._lines for word in _NAME.findall(str(line))}
        self.conditions = {text: own for text, own in self.conditions.items() if own in used}
        self._used = used.union(*map(_NAME.findall, self.conditions))
        self.operands = {n: array for n, array in self.operands.items() if array.name in self._used}
        self._fold()

    # What rules ask for

    def value(self, node: Any, indices: Indices) -> Value:
        """Return the value of a node, or of a constant, at an element."""
        if not isinstance(node, fx.Node):
            return self.constant(node)
        if node not in self.nodes:
            return self._operand(node, indices)
        if node in self._shared or node in self._stages:
            return self.element(self._named(node), indices)
        return self._computed(node, indices)

    def number(self, node: Any, indices: Indices) -> str:
        """Return the value as a number."""
        return number(self.value(node, indices))

    def argument(self, given: Any, indices: Indices) -> Value:
        """Return the value of an argument that is broadcast to the shape that has the indices."""
        return self.value(given, _broadcast(given, indices))

    def repeatable_argument(self, given: Any, indices: Indices) -> str:
        """Return the same as text that may stand there twice."""
        return self.repeatable(given, _broadcast(given, indices))

    def repeatable(self, node: Any, indices: Indices) -> str:
        """Return the number as text that may stand there twice: one entry of an array, or a
        constant."""
        text = number(self.value(node, indices))
        if _ENTRY.fullmatch(text) or not isinstance(node, fx.Node) or node not in self.nodes:
            return text
        return number(self.element(self._named(node), indices))

    def constant(self, given: Any) -> Value:
        """Return a number or a truth value."""
        if isinstance(given, bool):
            return Known(given)
        if not isinstance(given, int | float):
            raise Gap(f"a constant of type {type(given).__name__}")
        if not abs(given) <= LARGEST:
            raise Gap(f"the constant {given}")
        return repr(given) if given >= 0 else f"(-{-given!r})"

    def padded(self, node: fx.Node, indices: Indices, fill: float) -> str:
        """Return the number at an element that may be beyond the borders, where it is ``fill``."""
        conditions = borders(indices, shape(node))
        if not conditions:
            return self.number(node, indices)
        source, at = self._behind(node, indices)
        if all(i.within(1) for i, extent in zip(at, shape(source), strict=True) if extent == 1):
            named = source not in self.nodes or source in self._shared or source in self._stages
            if named or not math.isfinite(fill):
                return self._read(source, at, fill)
        if not math.isfinite(fill):
            raise Gap("padding of one element")
        with self.guarded():
            value = self.number(node, indices)
        return chosen(Compared(" and ".join(conditions)), value, number(self.constant(fill)))

    def stage(
        self,
        key: Any,
        axes: Sequence[str | None],
        body: str,
        shapes: tuple[Sequence[int], Sequence[int]] | None = None,
    ) -> Stage:
        """Define the stage that others find by ``key``."""
        name = f"t{len(self._lines)}"
        made = self._stages[key] = Stage(name, tuple(axes), shapes)
        self._lines.append(Definition(name, tuple(a for a in axes if a), body))
        return made

    def known(self, key: Any) -> Stage | None:
        """Return the stage with that key, if there is one."""
        return self._stages.get(key)

    def element(self, stage: Stage, indices: Indices) -> str:
        """Return an element of a stage."""
        return self._entry_of(stage, indices, 0.0 if self._guarded else None)

    @contextmanager
    def guarded(self, on: bool = True) -> Iterator[None]:
        """Let reads leave their arrays, where a condition hides what they give; or forbid it."""
        before, self._guarded = self._guarded, on
        try:
            yield
        finally:
            self._guarded = before

    def whole(self, node: fx.Node) -> tuple[list[str | None], list[Index]]:
        """Return an axis for each dimension of a node, and the same as indices."""
        taken: list[str] = []
        at = [self.axes.index((node, place), taken) for place in range(len(shape(node)))]
        return [index.atom.text if index.atom else None for index in at], at

    def placed(self, node: fx.Node, indices: Indices) -> Placed:
        """Return where a product is computed that is read at ``indices``: at these, if each
        dimension of the node is all of its own axes there, whatever views are between; else at each
        element of the node."""
        if axes := self._regular(node, indices):
            key = (node, *map(str, indices))
            return Placed(key, axes, list(indices), [self.axes.value(a) for a in axes if a])
        whole, at = self.whole(node)
        return Placed((node, "sum"), whole, at, list(indices))

    def table_entry(self, node: fx.Node, indices: Indices, below: int) -> Index:
        """Return an entry of a table, or a sum of axes, as an index of ``below`` elements."""
        from tilewright.scheduler.torch.translation.tables import as_index

        return as_index(self, node, indices, below)

    def operand_index(self, node: fx.Node, indices: Indices, below: int) -> Index:
        """Return an entry of an operand as an index of ``below`` elements."""
        if fake(node).dtype not in (torch.int32, torch.int64):
            raise Gap(f"indices of {fake(node).dtype}")
        if self._guarded:
            raise Gap("indices beyond a border")
        text = self._read(node, indices, None)
        self.operands[node] = replace(self.operands[node], below=below)
        return Index.of(text, 0, below - 1)

    # What it consists of

    def _regular(self, node: fx.Node, indices: Indices) -> list[str | None] | None:
        """Return the axes that regular indices are made of, the slowest first."""
        found: list[str | None] = []
        for index, extent in zip(indices, shape(node), strict=True):
            step = 1
            for atom, factor in sorted(index.terms, key=lambda term: term[1]):
                known = atom.text in self.axes.extents and atom.text not in found
                if factor != step or not known:
                    return None
                step *= self.axes.extents[atom.text]
            found += [atom.text for atom, _ in sorted(index.terms, key=lambda term: -term[1])]
            if step != extent or index.constant:
                return None
        return None if self._guarded else found

    def _check_conditions(self) -> None:
        """Check that each condition bounds the reduction of its own axis alone."""
        reduced = {axis for line in self._lines for axis in line.over}
        for text, own in self.conditions.items():
            if (set(_NAME.findall(text)) - {own}) & reduced:
                raise Gap("a mask by rows that are reduced")

    def _fold(self) -> None:
        """Let neighbouring axes that act as one be one."""
        pairs = zip(self.outputs, self._results, strict=True)
        results = {name: written(node, name, grid_of(node, self._grids)) for node, name in pairs}
        arrays = {array.name: array for array in self.operands.values()}
        conditions = tuple(self.conditions)
        extents = {a: e for a, e in self.axes.extents.items() if a in self._used}
        self._made = folded(Lines(tuple(self._lines), arrays | results, conditions, extents))
        self.operands = {n: self._made.arrays[a.name] for n, a in self.operands.items()}

    def _read_often(self) -> frozenset[fx.Node]:
        """Return the pointwise nodes that become stages because several nodes read them."""
        uses = Counter(source for node in self.nodes for source in node.all_input_nodes)
        return frozenset(node for node in self.nodes if uses[node] > 1 and self._is_dear(node))

    def _is_dear(self, node: fx.Node) -> bool:
        rule = rule_of(node)
        return rule is not None and rule.kind is Kind.POINTWISE and not rule.cheap

    def _computed(self, node: fx.Node, indices: Indices) -> Value:
        rule = rule_of(node)
        if rule is None:
            raise Gap(called(node))
        if fake(node).dtype.is_complex:
            raise Gap("complex numbers")
        check_wrapping(node)
        if rule.view is not None:
            return self.value(*seen_through(node, indices))
        if rule.value is not None:
            return rule.value(self, node, indices)
        if rule.kind is Kind.RESULT:
            return self._result_of(node, indices)
        if rule.result is not None:
            return rule.result(self, node, indices, 0)
        raise Gap(name_of(node))

    def _result_of(self, node: fx.Node, indices: Indices) -> Value:
        producer, part = node.args
        assert isinstance(producer, fx.Node)
        assert isinstance(part, int)
        rule = rule_of(producer)
        if producer not in self.nodes or rule is None or rule.result is None:
            raise Gap(f"a result of {name_of(producer)} from outside")
        return rule.result(self, producer, indices, part)

    def _named(self, node: fx.Node) -> Stage:
        """Return the node as a stage."""
        if node not in self._stages:
            grid = grid_of(node, self._grids)
            axes, at = self.whole(grid or node)
            shapes = (shape(node), shape(grid)) if grid else None
            if shapes:
                at = reshaped(at, shapes[1], shapes[0])
            with self.guarded(False):
                body = number(self._computed(node, at))
            self.stage(node, axes, body, shapes)
        return self._stages[node]

    def _result(self, node: fx.Node) -> str:
        """Return the name of the stage that is the output for a node."""
        if node not in self.nodes:
            raise Gap("an output from outside")
        return self._named(node).name

    def _operand(self, node: fx.Node, indices: Indices) -> Value:
        if fake(node).dtype is torch.int64:
            raise Gap("numbers of torch.int64")
        text = self._read(node, indices, 0.0 if self._guarded else None)
        return Compared(f"{text} != 0") if fake(node).dtype is torch.bool else text

    def _read(self, node: fx.Node, indices: Indices, fill: float | None) -> str:
        """Return an entry of an operand or of a stage, with a value beyond its borders."""
        if node in self.nodes:
            return self._entry_of(self._named(node), indices, fill)
        if node not in self.operands:
            self.operands[node] = described(node, f"x{len(self.operands)}")
        extents = shape(node)
        return _entry(self.operands[node].name, indices, extents, fill)

    def _entry_of(self, stage: Stage, indices: Indices, fill: float | None) -> str:
        if stage.shapes:
            own, view = stage.shapes
            indices = reshaped(indices, own, view)
        extents = [self.axes.extents[axis] if axis else 1 for axis in stage.axes]
        return _entry(stage.name, indices, extents, fill)

    def _behind(self, node: fx.Node, indices: Indices) -> tuple[fx.Node, Indices]:
        """Look through views as long as the borders behind them leave out the same elements."""
        while node in self.nodes and node not in self._stages and node not in self._shared:
            rule = rule_of(node)
            if rule is None or rule.view is None:
                break
            source, at = seen_through(node, indices)
            if sorted(borders(at, shape(source))) != sorted(borders(indices, shape(node))):
                break
            node, indices = source, at
        return node, indices

    # The text

    @property
    def reduces(self) -> bool:
        """Tell whether anything is reduced."""
        return any(line.over for line in self._lines)

    @cached_property
    def text(self) -> str:
        """The program, conditions on axes in one spelling."""
        return _spelt(self._written)

    @property
    def _written(self) -> str:
        made, results = self._made, self._results
        extents = [f"{axis}={extent}" for axis, extent in made.extents.items()]
        parts = [
            *([f"axes {', '.join(extents)}"] if extents else []),
            *(str(operand) for operand in self.operands.values()),
            *(str(made.arrays[name]) for name in results),
            *made.conditions,
            *map(str, made.stages),
            *([] if results == [made.stages[-1].name] else [f"-> {', '.join(results)}"]),
        ]
        return "\n".join(parts)
