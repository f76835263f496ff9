"""The costs of the stages of one block: from the database, or measured and recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from torch import fx

from tilewright.measure.database import Database
from tilewright.scheduler.torch.backend import judging
from tilewright.scheduler.torch.stages import measuring
from tilewright.scheduler.torch.stages.pieces import described
from tilewright.scheduler.torch.stages.planning import Stage
from tilewright.scheduler.torch.stages.running import Stage as RunningStage
from tilewright.scheduler.torch.stages.running import Step
from tilewright.scheduler.torch.stages.steps import Steps
from tilewright.scheduler.torch.stages.units import Piece
from tilewright.spaces.target import Target


class Costs:
    """The costs of stages of some units, each of which is a piece."""

    def __init__(self, pieces: Mapping[int, Piece], steps: Steps) -> None:
        self._pieces, self._steps = pieces, steps
        self._made: dict[tuple[int, int], Step] = {}
        for unit in pieces:
            self._step(unit, 1)
        self._texts = {unit: described(piece, steps.values) for unit, piece in pieces.items()}

    def seconds(self, stage: Stage, target: Target, database: Database | None) -> float:
        """Return the time of a stage on a target."""
        groups = [repr((self._described(group), self._wiring(group))) for group in stage]
        session = measuring.session_of(groups, target)
        known = measuring.remembered(database, session)
        if known is not None:
            return known
        found = self._timed(stage)
        given = [n for group in stage for unit in group for n in self._pieces[unit].outputs]
        elements = sum(prod(self._steps.values[node].shape) for node in given)
        measuring.remember(database, session, target, elements, found)
        return found

    def _timed(self, stage: Stage) -> float:
        steps, count = self._steps, len(stage)
        groups = [[self._step(unit, count) for unit in group] for group in stage]
        running = RunningStage(groups, steps.side(count))
        values = [steps.values[node] for node in steps.places]
        with judging.running():
            return measuring.seconds_of(lambda: running.run([*values]), steps.on_gpu)

    def _step(self, unit: int, groups: int) -> Step:
        """Return a unit for one of so many groups."""
        about = (unit, self._steps.share(groups))
        if about not in self._made:
            self._made[about] = self._steps.step(self._pieces[unit], groups)
        return self._made[about]

    def _described(self, group: Sequence[int]) -> list[str]:
        return [self._texts[unit] for unit in group]

    def _wiring(self, group: Sequence[int]) -> list[list[tuple[int, int] | None]]:
        """Return for each input of each unit the unit before it that gives it, and which of its
        outputs it is; None of what comes from elsewhere."""
        given: dict[fx.Node, tuple[int, int]] = {}
        found = []
        for place, unit in enumerate(group):
            piece = self._pieces[unit]
            found.append([given.get(node) for node in piece.inputs])
            given |= {node: (place, number) for number, node in enumerate(piece.outputs)}
        return found
