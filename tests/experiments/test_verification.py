"""Random schedules of every template: what is judged next, and what the results say."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from itertools import chain

import pytest

from experiments.verification import edges
from experiments.verification.cases import CASES, LARGE
from experiments.verification.judging import judge
from experiments.verification.outcomes import table, totals
from experiments.verification.plan import Plan
from experiments.verification.planting import Planted
from tilewright.measure.drawing.draw import check_sensitivity
from tilewright.measure.interfaces import Built
from tilewright.measure.records.measurement import ErrorKind, Measurement, Status
from tilewright.scheduler.verification import Verdict
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import templates_for

H200 = cuda_target("sm_90a")
QUICK = 1 << 22
"""Points of workloads that are looked at in a fraction of a second."""
SOME = {name: CASES[name] for name in ("turned", "heads", "softmax")}


def test_every_template_has_several_workloads_that_can_be_verified():
    served: Counter[str] = Counter()
    for text in CASES.values():
        work = workload(text)
        if work.points <= QUICK:
            check_sensitivity(work)
        served.update(t.name for t in templates_for(H200) if t.why_not(work, H200) is None)
    assert {t.name for t in templates_for(H200)} == served.keys()
    assert min(served.values()) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name not in LARGE])
def test_every_workload_can_be_verified(name):
    check_sensitivity(workload(CASES[name]))


def test_templates_and_their_cases_take_turns_until_enough_were_judged():
    outcomes = {}
    plan = Plan(SOME, H200, 24, outcomes)
    seen = []
    for group in plan.groups(0):
        seen.append((group.kind.name, group.case))
        plan.take(group, [Verdict(schedule) for schedule in group.schedules])
    assert Counter(name for name, _ in seen) == {"rows": 3, "map": 3}
    assert {case for name, case in seen if name == "rows"} == set(SOME)
    assert totals(outcomes)["map"] == {"right": 24, "cases": 2}
    assert list(Plan(SOME, H200, 24, outcomes).groups(9)) == []
    further = Plan(SOME, H200, 32, outcomes, only=["map"])
    assert next(further.groups(6)).kind.name == "map"


def test_schedules_that_are_refused_are_not_enough():
    outcomes = {}
    plan = Plan(SOME, H200, 8, outcomes, only=["map"])
    groups = plan.groups(0)
    for _ in range(2):
        group = next(groups)
        spills = "the kernel spills 12 bytes of registers"
        plan.take(group, [Verdict(s, ErrorKind.REJECTED, spills) for s in group.schedules])
    (row,) = outcomes["turned"].values()
    assert row == {"refused": 8, "reasons": {"rejected: the kernel spills N bytes of registers": 8}}
    group = next(groups)
    plan.take(group, [Verdict(s, ErrorKind.WRONG, "3 of 9 elements") for s in group.schedules])
    told = outcomes[group.case]["map"]
    assert told["wrong"] == 8
    assert told["schedules"][0]["error"] == "wrong_result: 3 of 9 elements"
    assert told["schedules"][0]["schedule"] == group.schedules[0].to_json()
    assert next(groups, None) is None
    assert table({"cases": outcomes}).splitlines()[2] == "| map | 2 | 0 | 8 | 16 |"


class Compiler:
    """Builds nothing of the first of each group."""

    batch = 8
    closed = False

    def build(self, candidates):
        refused = Built(candidates[0], None, 0.0, ErrorKind.REJECTED, "too large")
        return [refused, *(Built(c, b"", 0.0) for c in candidates[1:])]

    def close(self):
        self.closed = True


class Device:
    """Finds all right."""

    def run(self, job, built):
        assert all(b.candidate.job is job for b in built)
        return [Measurement(b.candidate.schedule, Status.OK, 1.0, (1.0,)) for b in built]

    def close(self):
        pass


def test_groups_are_judged_on_several_devices_at_once():
    outcomes = {}
    plan, compiler = Plan(SOME, H200, 30, outcomes), Compiler()
    judge(plan.groups(0), compiler, [Device(), Device(), Device()], 60, plan.take)
    assert compiler.closed
    counted = totals(outcomes)
    assert counted["map"]["right"] + counted["map"]["refused"] >= 30
    assert all(row["refused"] >= 1 for row in counted.values())


class Slow(Device):
    """Takes until the time is up, and looks then for what it is to load."""

    def __init__(self, compiler):
        self.compiler, self.begun, self.missed = compiler, threading.Event(), False

    def run(self, job, built):
        self.begun.set()
        self.missed = self.compiler.is_closed.wait(1.0)
        return super().run(job, built)


class Leaving(Compiler):
    """Tells when what it built is gone."""

    def __init__(self):
        self.is_closed = threading.Event()

    def close(self):
        self.is_closed.set()


def test_what_runs_as_time_is_up_keeps_its_binaries_and_is_judged():
    outcomes = {}
    plan, compiler = Plan(SOME, H200, 30, outcomes), Leaving()
    device, groups = Slow(compiler), plan.groups(0)
    first = next(groups)  # on a busy machine it takes long to make
    judge(chain([first], groups), compiler, [device], 0.5, plan.take)
    assert device.begun.is_set()
    assert not device.missed
    assert compiler.is_closed.is_set()
    assert sum(counted["right"] for counted in totals(outcomes).values()) == 7


def test_nothing_is_begun_once_time_is_up():
    plan = Plan(SOME, H200, 30, {})
    judge(plan.groups(0), Compiler(), [Device()], 0, plan.take)
    assert next(plan.groups(0)).case in SOME


class Interrupting(Device):
    """Somebody presses Ctrl-C while it runs the first group."""

    runs = 0

    def run(self, job, built):
        self.runs += 1
        if self.runs == 1:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.2)
        return super().run(job, built)


def test_nothing_is_begun_once_it_is_interrupted():
    plan, compiler, device = Plan(SOME, H200, 200, {}), Compiler(), Interrupting()
    with pytest.raises(KeyboardInterrupt):
        judge(plan.groups(0), compiler, [device], 60, plan.take)
    assert compiler.closed
    assert device.runs < 8


@pytest.mark.parametrize(("kind", "caught"), [(ErrorKind.WRONG, True), (ErrorKind.REJECTED, False)])
def test_planted_faults_that_are_refused_are_neither_found_nor_missed(kind, caught):
    def judged(space, schedules):
        for schedule in schedules:
            yield (
                Verdict(schedule, kind, "as asked")
                if isinstance(space, Planted)
                else Verdict(schedule)
            )

    planted = {}
    about = ("softmax, edges", "softmax r=8 c=600", cuda_target("sm_90a"), judged)
    edges._case({}, planted, *about, number=4, seed=0)
    assert bool(planted) == caught
    assert all(each["caught"] == each["planted"] > 0 for each in planted.values())
