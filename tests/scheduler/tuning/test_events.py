"""The events of a run: one stream for a workload and for a suite, with keys that stay."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import FrozenInstanceError

import pytest

from tests.scheduler.made_up_machine import MadeUpMachine
from tilewright.measure.database import Database
from tilewright.scheduler.strategies.random_search import RandomSearch
from tilewright.scheduler.suites.suite import Member, Suite
from tilewright.scheduler.testing.landscape import MACHINE, hills
from tilewright.scheduler.tuning.baseline import Baseline
from tilewright.scheduler.tuning.events import VERSION, Compared, Event, Started
from tilewright.scheduler.tuning.tuner import Tuner
from tilewright.spaces.errors import InputError

SVG = "{http://www.w3.org/2000/svg}"
HEAD = {"event", "version", "target_key"}
STATE = HEAD | {"task", "phase", "trials", "trials_allowed", "pending", "elapsed_s"}
TRIAL = STATE | {"status", "error_kind", "latency_s", "schedule", "failures"}
TRIAL |= {"best", "best_s", "value"}
RESULT = HEAD | {"target", "objective", "value", "library_value", "sections", "stopped", "trials"}
RESULT |= {"resumed", "lost", "failures", "seconds", "overhead", "history", "tasks"}
KEYS = {
    "start": HEAD | {"target", "session", "title", "tasks"},
    "compared": HEAD | {"tasks"},
    "asked": STATE,
    "trial": TRIAL,
    "preliminary": TRIAL,
    "final": TRIAL,
    "result": RESULT,
}
"""Keys of version 1: more may come, and none may go."""
ALONE = {"start": {"workload"}, "result": {"workload", "schedule", "best", "leaders"}}
"""Keys of a workload by itself."""


def told(database: Database, what: Suite | None) -> list[Event]:
    """The events of a run of a workload, or of a suite."""
    space = hills()
    seen: list[Event] = [
        Started.of(what or space.workload, MACHINE, "session"),
        Compared(MACHINE, (Baseline(space.workload, 50.0, 1e-3),)),
    ]
    tuner = Tuner(
        what or space.workload,
        MACHINE,
        database,
        MadeUpMachine(),
        RandomSearch,
        spaces=[space] * (len(what.members) if what else 1),
    )
    seen.append(tuner.run(24, 600, on_progress=seen.append))
    return seen


@pytest.mark.parametrize("is_suite", [False, True])
def test_events_are_lines_of_json_whose_keys_stay(database: Database, is_suite: bool) -> None:
    suite = Suite("one", (Member(hills().workload, 2.0, "product"),)) if is_suite else None
    events = [json.loads(json.dumps(event.to_json())) for event in told(database, suite)]
    kinds = [event["event"] for event in events]
    assert kinds[:3] == ["start", "compared", "asked"]
    assert kinds[-1] == "result"
    assert set(kinds) - set(KEYS) == set()
    assert {"trial", "final"} < set(kinds)
    assert VERSION == 1
    for event in events:
        alone = set() if is_suite else ALONE.get(event["event"], set())
        assert event.keys() >= KEYS[event["event"]] | alone
        assert (event["version"], event["target_key"]) == (1, MACHINE.fingerprint)
    trials = [event["trials"] for event in events if event["event"] == "trial"]
    assert trials == list(range(1, 25))


def test_events_do_not_change_and_a_suite_has_no_single_best(database: Database) -> None:
    suite = Suite("two", tuple(Member(hills(size).workload) for size in (256, 512)))
    tuner = Tuner(
        suite,
        MACHINE,
        database,
        MadeUpMachine(),
        RandomSearch,
        spaces=[hills(256), hills(512)],
    )
    result = tuner.run(32, 600)
    with pytest.raises(FrozenInstanceError):
        result.seconds = 0.0
    with pytest.raises(InputError, match="2 workloads are tuned; allowed: tasks, one of each"):
        result.best  # noqa: B018
    assert [task.best is not None for task in result.tasks] == [True, True]


def test_a_notebook_shows_the_improvements_of_a_run(database: Database) -> None:
    result = told(database, None)[-1]
    words, _, picture = result._repr_html_().partition("</pre>")
    assert words.startswith("<pre>&lt;TuningResult matmul")
    assert ET.fromstring(picture).findtext(f"{SVG}title").endswith("in 24 trials")
