"""Runs of a tuner on a made-up machine."""

from __future__ import annotations

from measure.database import Database
from scheduler.strategies.evolutionary import EvolutionarySearch
from scheduler.strategies.search import Search
from scheduler.testing.landscape import Guess, trees
from scheduler.tuning.tuner import Tuner
from spaces.schedule import Schedule
from spaces.space import Space
from tests.scheduler.made_up_machine import MadeUpMachine


def tuner(
    space: Space, database: Database, machine: MadeUpMachine, search: Search | None = None
) -> Tuner:
    search = search or EvolutionarySearch(space, trees(space), Guess())
    return Tuner(space.workload, space.target, database, machine, search, space=space)


def rows(space: Space, database: Database, name: str = "search") -> list[Schedule]:
    every = database.records(space.workload, space.target)
    return [record.schedule for record in every if record.measurement.round == name]
