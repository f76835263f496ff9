"""Who is tried again, and who is to blame, on a made-up machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from tests.measure.cpu.c_kernels import good
from tilewright.measure.interfaces import Built
from tilewright.measure.records.measurement import ErrorKind, Job, Measurement, Status
from tilewright.measure.retrying import STARTS, build, run

Verdict = tuple[Status, ErrorKind | None]
FINE: Verdict = (Status.OK, None)
DIED: Verdict = (Status.LOST, ErrorKind.WORKER_LOST)


class Machine:
    """Runs batches as ``judge`` says: by name, what becomes of those that run together."""

    def __init__(self, judge: Callable[[list[str], int], dict[str, Verdict]]) -> None:
        self._judge = judge
        self.batches: list[list[str]] = []

    def run(self, job: Job, built: Sequence[Built]) -> list[Measurement]:
        names = [b.candidate.kernel.call.entry for b in built]
        verdicts = self._judge(names, len(self.batches))
        self.batches.append(names)
        return [
            Measurement(
                b.candidate.schedule,
                status,
                1e-6 if kind is None else None,
                (),
                (),
                "",
                job.round,
                kind,
            )
            for b in built
            for status, kind in [verdicts[b.candidate.kernel.call.entry]]
        ]

    def settle(self, names: Sequence[str], final: bool = False) -> dict[str, Verdict]:
        built = [Built(good(name), b"") for name in names]
        job = replace(built[0].candidate.job, final=final)
        results = [r for some in run(self.run, job, built) for r in some]
        found = {
            r.candidate.kernel.call.entry: (r.measurement.status, r.measurement.error_kind)
            for r in results
        }
        assert len(results) == len(found) == len(names)
        return found


NAMES = [f"k{i}" for i in range(16)]


def verdicts(names: list[str], culprits: set[str]) -> dict[str, Verdict]:
    """Of a batch in which a culprit takes all others along."""
    return dict.fromkeys(names, DIED if culprits & set(names) else FINE)


def test_what_is_measured_is_not_run_again():
    machine = Machine(lambda names, number: dict.fromkeys(names, FINE))
    assert machine.settle(NAMES) == dict.fromkeys(NAMES, FINE)
    assert machine.batches == [NAMES]


@pytest.mark.parametrize("kills", [{0}, {0, 1}, {0, 1, 3}, {0, 2, 4, 5}])
@pytest.mark.parametrize("final", [False, True])
def test_kills_from_outside_cost_no_measurement(kills, final):
    machine = Machine(lambda names, n: dict.fromkeys(names, DIED if n in kills else FINE))
    assert machine.settle(NAMES, final) == dict.fromkeys(NAMES, FINE)


@pytest.mark.parametrize("culprits", [{"k0"}, {"k7"}, {"k15", "k14"}, set(NAMES)])
def test_culprits_stand_alone_and_are_blamed(culprits):
    machine = Machine(lambda names, n: verdicts(names, culprits))
    found = machine.settle(NAMES)
    crashed = (Status.ERROR, ErrorKind.CRASH)
    assert found == {name: crashed if name in culprits else FINE for name in NAMES}
    assert len(machine.batches) <= 3 * len(NAMES)


def test_a_second_try_alone_comes_after_the_others():
    machine = Machine(lambda names, n: verdicts(names, {"k3", "k9"}))
    machine.settle(NAMES)
    assert machine.batches[-6:] == [[name] for name in ("k2", "k3", "k8", "k9", "k3", "k9")]


@pytest.mark.parametrize("kind", [ErrorKind.TIMEOUT, ErrorKind.MEMORY])
def test_a_suspect_that_is_well_alone_is_measured(kind):
    def judge(names: list[str], number: int) -> dict[str, Verdict]:
        late = {"k2": (Status.LOST, kind)} if len(names) > 1 else {}
        return dict.fromkeys(names, FINE) | late

    machine = Machine(judge)
    assert machine.settle(NAMES) == dict.fromkeys(NAMES, FINE)
    assert machine.batches[1:] == [["k2"]]


@pytest.mark.parametrize("kind", [ErrorKind.TIMEOUT, ErrorKind.MEMORY])
def test_a_suspect_that_fails_alone_twice_is_blamed_for_that(kind):
    def judge(names: list[str], number: int) -> dict[str, Verdict]:
        return {name: (Status.LOST, kind) if name == "k2" else FINE for name in names}

    found = Machine(judge).settle(NAMES)
    assert found == dict.fromkeys(NAMES, FINE) | {"k2": (Status.ERROR, kind)}


def test_a_machine_that_starts_nothing_is_asked_a_few_times_and_blames_nobody():
    nothing = (Status.LOST, ErrorKind.DEVICE)
    machine = Machine(lambda names, number: dict.fromkeys(names, nothing))
    assert machine.settle(NAMES) == dict.fromkeys(NAMES, nothing)
    assert machine.batches == [NAMES] * STARTS


def test_finalists_stay_together_for_one_loss():
    machine = Machine(lambda names, n: dict.fromkeys(names, DIED if n < 2 else FINE))
    machine.settle(NAMES, final=True)
    assert machine.batches == [NAMES, NAMES, NAMES[:8], NAMES[8:]]


def test_what_a_dead_compiler_took_is_built_once_more():
    class Builder:
        batch = 16

        def __init__(self) -> None:
            self.asked: list[list[str]] = []

        def build(self, candidates):
            self.asked.append([c.kernel.call.entry for c in candidates])
            kinds = {"dead": ErrorKind.COMPILER_LOST, "bad": ErrorKind.COMPILE}
            late = {"unlucky": ErrorKind.COMPILER_LOST} if len(self.asked) == 1 else {}
            found = [(kinds | late).get(c.kernel.call.entry) for c in candidates]
            return [
                Built(c, b"" if kind is None else None, error_kind=kind)
                for c, kind in zip(candidates, found, strict=True)
            ]

        def close(self) -> None:
            pass

    builder = Builder()
    built = build(builder, [good(name) for name in ("a", "dead", "bad", "unlucky")])
    assert builder.asked == [["a", "dead", "bad", "unlucky"], ["dead", "unlucky"]]
    kinds = [None, ErrorKind.COMPILER_LOST, ErrorKind.COMPILE, None]
    assert [b.error_kind for b in built] == kinds
