"""Compile a graph as stages, and keep them where they are faster than the graph as it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

import torch
from torch import fx

from tilewright.measure.database import Database
from tilewright.scheduler.torch.backend import judging
from tilewright.scheduler.torch.backend.explanation import GraphReport
from tilewright.scheduler.torch.stages import measuring
from tilewright.scheduler.torch.stages.pieces import compiled, described, lies
from tilewright.scheduler.torch.stages.planning import Group, Limits, Stage, TooWideError, planned
from tilewright.scheduler.torch.stages.running import (
    Side,
    Staged,
    Step,
    Streams,
    threads,
)
from tilewright.scheduler.torch.stages.running import Stage as RunningStage
from tilewright.scheduler.torch.stages.units import Piece, Units, objection
from tilewright.scheduler.torch.translation.nodes import name_of
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.errors import InputError
from tilewright.spaces.target import Target

MOST_GROUPS = 4
"""Groups of a stage, at most; on a CPU also as many as there are threads."""

Compiled = Any
NONE: Mapping[fx.Node, Any] = {}


def staged(
    module: fx.GraphModule,
    inputs: Sequence[Any],
    whole: Compiled,
    target: Target,
    database: Database | None,
    report: GraphReport,
) -> Compiled:
    """Return a graph as stages if that is faster than ``whole``, the same graph that Inductor
    compiled in one piece; else ``whole``. The report says which and why."""
    try:
        found = _Staging(module, inputs, whole, target, database)
        report.stages, made = found.result()
    except Exception as error:  # a fault of ours must not keep a model from running
        report.stages = f"none: {type(error).__name__}: {' '.join(str(error).split())[:150]}"
        made = None
    return whole if made is None else made


class _Staging:
    """The stages of one graph."""

    def __init__(
        self,
        module: fx.GraphModule,
        inputs: Sequence[Any],
        whole: Compiled,
        target: Target,
        database: Database | None,
    ) -> None:
        self._module, self._inputs, self._whole = module, inputs, whole
        self._target, self._database = target, database
        self._threads = target.threads if isinstance(target, CpuTarget) else 0
        self._values: dict[fx.Node, torch.Tensor] = {}
        self._places: dict[fx.Node, int] = {}
        self._made: dict[tuple[int, int], Step] = {}

    def result(self) -> tuple[str, Compiled | None]:
        """Return words about the stages, and the graph that has them if it is faster."""
        why = objection(self._module.graph) or self._lack()
        if why:
            return f"none: {why}", None
        self._units = Units(self._module)
        blocks = self._units.blocks()
        if all(len(block) == 1 for block in blocks):
            return "none: it has no branches", None
        with judging.running():
            example = like_a_model(self._inputs)
            wanted = self._whole(list(example))
        self._take_inputs(example)
        stages = [stage for block in blocks for stage in self._stages_of(block)]
        if all(len(stage) == 1 for stage in stages):
            return "none: one after the other is as fast", None
        return self._compared(self._compiled(stages, wanted), example, wanted, stages)

    def _lack(self) -> str:
        if isinstance(self._target, CpuTarget) and self._threads < 2:
            return "torch has one thread"
        return ""

    # -- values and pieces ---------------------------------------------------------------------

    def _take_inputs(self, example: Sequence[torch.Tensor]) -> None:
        for node, tensor in zip(
            self._module.graph.find_nodes(op="placeholder"), example, strict=True
        ):
            self._put(node, tensor)

    def _put(self, node: fx.Node, tensor: torch.Tensor) -> None:
        self._places.setdefault(node, len(self._places))
        self._values[node] = tensor

    def _step(self, piece: Piece, share: int, strides: Mapping[fx.Node, Any] = NONE) -> Step:
        """Return a piece for so many threads, after one run that shows how its outputs lie: those
        that have ``strides`` must lie so."""
        wanted: Mapping[fx.Node, Any] = {}
        while True:
            function = compiled(piece, self._values, share, wanted)
            with judging.running():
                results = function([self._values[node] for node in piece.inputs])
            found = dict(zip(piece.outputs, results, strict=True))
            wrong = {
                node: strides[node]
                for node, tensor in found.items()
                if node in strides and not lies(tensor, strides[node])
            }
            if not wrong:
                break
            if wanted:
                raise InputError("an output lies in memory as no piece can write it")
            wanted = wrong
        for node, tensor in found.items():
            self._put(node, tensor)
        return Step(
            function,
            tuple(self._places[node] for node in piece.inputs),
            tuple(self._places[node] for node in piece.outputs),
        )

    def _share(self, groups: int) -> int:
        """Return the threads of each of so many groups; 0 on a GPU."""
        return max(1, self._threads // groups) if self._threads else 0

    def _side(self, groups: int) -> Side:
        if not self._threads:
            return Streams()
        return threads(groups, self._share(groups))

    # -- one block -----------------------------------------------------------------------------

    def _stages_of(self, block: range) -> list[Stage]:
        """Return the stages of a block, of units as the graph counts them."""
        pieces = {unit: self._units.piece([unit]) for unit in block}
        for unit in block:
            self._made[unit, self._share(1)] = self._step(pieces[unit], self._share(1))
        alone: list[Stage] = [((unit,),) for unit in block]
        if len(block) == 1:
            return alone
        texts = {unit: described(pieces[unit], self._values) for unit in block}
        before = [
            {b - block.start for b in self._units.before[unit] if b in block} for unit in block
        ]

        def cost(stage: Stage) -> float:
            return self._seconds(_shifted(stage, block.start), pieces, texts)

        groups = min(MOST_GROUPS, self._threads or MOST_GROUPS)
        try:
            found = planned(before, cost, Limits(groups))
        except TooWideError:
            return alone
        return [_shifted(stage, block.start) for stage in found]

    def _seconds(
        self, stage: Stage, pieces: Mapping[int, Piece], texts: Mapping[int, str]
    ) -> float:
        """Return the time of a stage, from the database or measured."""
        members = [[texts[unit] for unit in group] for group in stage]
        wiring = [_wiring([pieces[unit] for unit in group]) for group in stage]
        session = measuring.session_of(
            [repr(each) for each in zip(members, wiring, strict=True)], self._target
        )
        known = measuring.remembered(self._database, session)
        if known is not None:
            return known
        share = self._share(len(stage))
        for group in stage:
            for unit in group:
                if (unit, share) not in self._made:
                    self._made[unit, share] = self._step(pieces[unit], share)
        groups = [[self._made[unit, share] for unit in group] for group in stage]
        running = RunningStage(groups, self._side(len(stage)))
        values = self._all_values()
        with judging.running():
            seconds = measuring.seconds_of(lambda: running.run([*values]), not self._threads)
        given = [n for group in stage for unit in group for n in pieces[unit].outputs]
        elements = sum(prod(self._values[node].shape) for node in given)
        measuring.remember(self._database, session, self._target, elements, seconds)
        return seconds

    def _all_values(self) -> list[Any]:
        return [self._values[node] for node in self._places]

    # -- the whole -----------------------------------------------------------------------------

    def _compiled(self, stages: Sequence[Stage], wanted: Sequence[Any]) -> Staged:
        """Return the graph as stages. Neighbours of one group become one piece."""
        output = self._module.graph.output_node()
        results = list(output.args[0])
        strides = {
            node: tensor.stride()
            for node, tensor in zip(results, wanted, strict=True)
            if isinstance(node, fx.Node) and isinstance(tensor, torch.Tensor)
        }
        groups_of = [
            [[self._final(group, len(stage), strides)] for group in stage]
            for stage in joined(stages)
        ]
        kept = {self._places[node] for node in results if isinstance(node, fx.Node)}
        last = _last_uses(groups_of, kept)
        running = [
            RunningStage(groups, self._side(len(groups)), last[place])
            for place, groups in enumerate(groups_of)
        ]
        outputs = [self._places[n] if isinstance(n, fx.Node) else None for n in results]
        return Staged(running, len(self._places), outputs)

    def _final(self, group: Group, groups: int, strides: Mapping[fx.Node, Any]) -> Step:
        return self._step(self._units.piece(group), self._share(groups), strides)

    def _compared(
        self, made: Staged, example: Sequence[Any], wanted: Sequence[Any], stages: Sequence[Stage]
    ) -> tuple[str, Staged | None]:
        """Let the two ways compete."""
        with judging.running():
            found = made(list(example))
            if not all(map(judging.alike, found, wanted)):
                return "none: their result differs", None
            times = judging.in_turns(
                lambda given: made(list(given)), lambda given: self._whole(list(given)), [example]
            )
        words = f"{times.gain:.2f} times as fast as without"
        if not times.wins:
            return f"none: they are {words}", None
        side = [stage for stage in stages if len(stage) > 1]
        more = ", ..." if len(side) > 1 else ""
        named = self._named(side[0]) + more
        return f"{len(side)} with groups side by side, {words}: {named}", made

    def _named(self, stage: Stage) -> str:
        """Return a stage in words, a group by its first operators."""
        groups = (
            ", ".join(name_of(self._units.nodes[unit][0]) for unit in group) for group in stage
        )
        return " | ".join(groups)


def _shifted(stage: Stage, by: int) -> Stage:
    return tuple(tuple(unit + by for unit in group) for group in stage)


def _wiring(pieces: Sequence[Piece]) -> list[list[tuple[int, int] | None]]:
    """Return for each input of each piece the piece before it that gives it, and which of its
    outputs it is; None of what comes from elsewhere."""
    given: dict[fx.Node, tuple[int, int]] = {}
    found = []
    for place, piece in enumerate(pieces):
        found.append([given.get(node) for node in piece.inputs])
        given |= {node: (place, number) for number, node in enumerate(piece.outputs)}
    return found


def joined(stages: Iterable[Stage]) -> list[Stage]:
    """Return the stages, neighbours of one group as one."""
    found: list[Stage] = []
    for stage in stages:
        if found and len(stage) == len(found[-1]) == 1:
            found[-1] = (found[-1][0] + stage[0],)
        else:
            found.append(stage)
    return found


def _last_uses(stages: Sequence[Sequence[Sequence[Step]]], kept: set[int]) -> list[list[int]]:
    """Return for each stage the values that no later one reads, but for those ``kept``."""
    last: dict[int, int] = {}
    for number, groups in enumerate(stages):
        for group in groups:
            for step in group:
                last |= dict.fromkeys((*step.inputs, *step.outputs), number)
    return [
        [place for place, number in last.items() if number == stage and place not in kept]
        for stage in range(len(stages))
    ]


def like_a_model(inputs: Sequence[Any]) -> list[Any]:
    """Return tensors like these whose values stay of one size from layer to layer: vectors are near
    one, what has more dimensions is small."""
    made = judging.like(inputs)
    for tensor in made:
        if isinstance(tensor, torch.Tensor) and tensor.is_floating_point():
            if tensor.dim() > 1:
                tensor.mul_(prod(tensor.shape[1:]) ** -0.5)
            else:
                tensor.uniform_(0.5, 1.5)
    return made
