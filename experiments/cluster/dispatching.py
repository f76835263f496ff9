"""Count the candidates that a driver hands out a second, by the number of its workers.

Nothing but the driver's own work is there: workers are made up, and answer at once.
"""

from __future__ import annotations

import time
from collections import deque

from tests.measure.cluster.made_up import Workers, nodes_event
from tests.measure.cluster.simulated import TARGET, WORK, candidate
from tilewright.measure.cluster.driver.dispatcher import Dispatcher
from tilewright.measure.cluster.driver.plan import Needs
from tilewright.measure.records.measurement import Job

PER_WORKER, LEAST = 16, 2048


def dispatch_rate(workers: int) -> float:
    """Candidates a second by a driver of so many run workers, its workers' own time left out."""
    dispatcher, cluster, job = Dispatcher(Needs()), Workers(), Job("one", WORK, TARGET)
    total = max(LEAST, PER_WORKER * workers)
    candidates = [candidate(f"c{i}", job) for i in range(total)]
    events = deque([nodes_event(*(f"n{i}" for i in range(workers)))])
    spent, done = 0.0, 0
    while done < total:
        began, results = time.perf_counter(), []
        if events:
            results = dispatcher.take(events.popleft(), time.time())
        elif not done:
            dispatcher.submit(job, candidates)
            began = time.perf_counter()
        commands = list(dispatcher.commands(time.time()))
        done += len(results)
        spent += time.perf_counter() - began
        events.extend(filter(None, map(cluster.answer, commands)))
    return round(total / spent, 1)
