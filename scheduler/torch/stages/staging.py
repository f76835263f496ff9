"""Compile a graph as stages, and keep them where they are faster than the graph as it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, groupby
from typing import Any

import torch
from torch import fx

from tilewright.measure.database import Database
from tilewright.scheduler.torch.backend import judging
from tilewright.scheduler.torch.backend.explanation import GraphReport
from tilewright.scheduler.torch.stages.costs import Costs
from tilewright.scheduler.torch.stages.planning import Limits, Stage, TooWideError, planned
from tilewright.scheduler.torch.stages.running import Stage as RunningStage
from tilewright.scheduler.torch.stages.running import Staged, Step
from tilewright.scheduler.torch.stages.steps import Steps, like_a_model
from tilewright.scheduler.torch.stages.units import Units, objection
from tilewright.scheduler.torch.translation.nodes import name_of
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.target import Target

MOST_GROUPS = 4
"""Groups of a stage, at most; on a CPU also as many as there are threads."""

Compiled = Any


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

    def result(self) -> tuple[str, Compiled | None]:
        """Return words about the stages, and the graph that has them if it is faster."""
        why = objection(self._module.graph) or _lack(self._target)
        if why:
            return f"none: {why}", None
        self._units = Units(self._module)
        blocks = self._units.blocks()
        if all(len(block) == 1 for block in blocks):
            return "none: it has no branches", None
        with judging.running():
            example = like_a_model(self._inputs)
            wanted = self._whole(list(example))
        self._steps = Steps(self._module.graph, example, self._target)
        stages: list[Stage] = []
        for branched, run in groupby(blocks, lambda block: len(block) > 1):
            part = self._branched if branched else self._row
            stages += part(run)
        if all(len(stage) == 1 for stage in stages):
            return "none: one after the other is as fast", None
        return self._compared(self._compiled(stages, wanted), example, wanted, stages)

    # -- blocks --------------------------------------------------------------------------------

    def _row(self, blocks: Iterable[range]) -> list[Stage]:
        """Return the stages of units that run one after the other, of a single one each."""
        units = tuple(chain.from_iterable(blocks))
        self._steps.step(self._units.piece(units), 1)
        return [((unit,),) for unit in units]

    def _branched(self, blocks: Iterable[range]) -> list[Stage]:
        return [stage for block in blocks for stage in self._stages_of(block)]

    def _stages_of(self, block: range) -> list[Stage]:
        """Return the stages of a block of branches, of units as the graph counts them."""
        units = self._units
        costs = Costs({unit: units.piece([unit]) for unit in block}, self._steps)
        before = [{b - block.start for b in units.before[unit] if b in block} for unit in block]

        def cost(stage: Stage) -> float:
            return costs.seconds(_shifted(stage, block.start), self._target, self._database)

        groups = min(MOST_GROUPS, self._steps.threads or MOST_GROUPS)
        try:
            found = planned(before, cost, Limits(groups))
        except TooWideError:
            return [((unit,),) for unit in block]
        return [_shifted(stage, block.start) for stage in found]

    # -- the whole -----------------------------------------------------------------------------

    def _compiled(self, stages: Sequence[Stage], wanted: Sequence[Any]) -> Staged:
        """Return the graph as stages. Neighbours of one group become one piece."""
        steps, results = self._steps, list(self._module.graph.output_node().args[0])
        strides = {
            node: tensor.stride()
            for node, tensor in zip(results, wanted, strict=True)
            if isinstance(node, fx.Node) and isinstance(tensor, torch.Tensor)
        }
        every = [
            [[steps.step(self._units.piece(group), len(stage), strides)] for group in stage]
            for stage in joined(stages)
        ]
        outputs = [steps.places[n] if isinstance(n, fx.Node) else None for n in results]
        last = _last_uses(every, set(outputs))
        running = [
            RunningStage(groups, steps.side(len(groups)), last[place])
            for place, groups in enumerate(every)
        ]
        return Staged(running, len(steps.places), outputs)

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


def _lack(target: Target) -> str:
    one = isinstance(target, CpuTarget) and target.threads < 2
    return "torch has one thread" if one else ""


def _shifted(stage: Stage, by: int) -> Stage:
    return tuple(tuple(unit + by for unit in group) for group in stage)


def joined(stages: Iterable[Stage]) -> list[Stage]:
    """Return the stages, neighbours of one group as one."""
    found: list[Stage] = []
    for stage in stages:
        if found and len(stage) == len(found[-1]) == 1:
            found[-1] = (found[-1][0] + stage[0],)
        else:
            found.append(stage)
    return found


def _last_uses(
    stages: Sequence[Sequence[Sequence[Step]]], kept: set[int | None]
) -> list[list[int]]:
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
