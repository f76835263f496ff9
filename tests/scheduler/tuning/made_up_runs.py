"""Runs of a tuner on a made-up machine."""

from __future__ import annotations

from tests.scheduler.made_up_machine import MadeUpMachine
from tilewright.measure.database import Database
from tilewright.scheduler.strategies.evolutionary import EvolutionarySearch
from tilewright.scheduler.strategies.search import Search
from tilewright.scheduler.testing.landscape import Guess, trees
from tilewright.scheduler.tuning.tuner import Tuner
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space


def tuner(
    space: Space, database: Database, machine: MadeUpMachine, search: Search | None = None
) -> Tuner:
    made = search or EvolutionarySearch(space, trees(space), Guess())
    return Tuner(space.workload, space.target, database, machine, lambda _: made, spaces=[space])


def rows(space: Space, database: Database, name: str = "search") -> list[Schedule]:
    every = database.records(space.workload, space.target)
    return [record.schedule for record in every if record.measurement.round == name]
