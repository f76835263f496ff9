"""The child that runs candidates on a GPU: requests and events are lines of JSON.

    python -m measure.cuda.server PARENT DEVICE MODULE:FUNCTION

A request is a workload, the protocol and the candidates (:func:`request`); the answer is a line
per event: ``draw`` now and then while a problem is worked out on the host; ``load``, ``run`` and
``time`` before a candidate's work, so that the parent knows who was at work when this process dies
or hangs; ``result`` of a candidate, and ``done``. A wrong kernel ends the request, for it may have
spoilt the others' memory: those without a result are to be asked for again. After an error of the
device this process says ``lost`` and ends: nothing after it could be believed.
``FUNCTION`` opens the GPU of number ``DEVICE``: :data:`DRIVER`, but for tests.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from tilewright.measure.calls import call_from_json, call_to_json
from tilewright.measure.cuda.device import Device, DeviceError
from tilewright.measure.cuda.problems import HostDraws
from tilewright.measure.cuda.session import MeasuringSession, Trial, check_oracle
from tilewright.measure.interfaces import Built
from tilewright.measure.records.measurement import Job
from tilewright.measure.timing import TimingProtocol
from tilewright.spaces.numerics.mode import as_numerics
from tilewright.spaces.operators import workload_from_json
from tilewright.spaces.workloads.workload import Workload

DRIVER = "tilewright.measure.cuda.driver:open_device"
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)


def request(
    job: Job, built: Sequence[Built], protocol: TimingProtocol, seed: int
) -> dict[str, Any]:
    """Make a request to measure ``built``, candidates of ``job``; JSON values."""
    return {
        "workload": job.workload.to_json(),
        "protocol": asdict(protocol),
        "best": job.best,
        "final": job.final,
        "thorough": job.thorough,
        "seed": seed,
        "candidates": [_described(b) for b in built],
    }


def main() -> None:
    """Serve requests until standard input ends."""
    parent, ordinal, opener = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        return
    sys.stdout = os.fdopen(os.dup(1), "w")  # of events alone: what libraries print goes elsewhere
    os.dup2(2, 1)
    module, _, function = opener.partition(":")
    try:
        device: Device = getattr(import_module(module), function)(ordinal)
        check_oracle(device)
    except DeviceError as error:
        _say(event="lost", text=str(error))
        return
    _say(event="ready", name=device.name, architecture=device.architecture)
    host = HostDraws(lambda: _say(event="draw"))
    for line in sys.stdin:
        try:
            _serve(device, json.loads(line), host)
        except DeviceError as error:
            _say(event="lost", text=str(error))
            return
        _say(event="done")


def _serve(device: Device, asked: Mapping[str, Any], host: HostDraws) -> None:
    workload = workload_from_json(asked["workload"])
    protocol = TimingProtocol(**asked["protocol"])
    best = float("inf") if asked["best"] is None else asked["best"]
    trials = [_trial(fields, workload) for fields in asked["candidates"]]
    final = asked["final"]
    with MeasuringSession(device, workload, asked["seed"], final=final, host=host) as session:
        for i, trial in enumerate(trials):
            _say(event="load", index=i)
            session.load(trial)
            if trial.error_kind is None:
                _say(event="run", index=i)
                session.judge(trial, protocol, best)
            if trial.error_kind is not None or trial.slow:
                _tell(i, trial)
            if trial.error_kind is not None and trial.prepared is not None:
                return  # who knows what else it wrote: the others get memory of their own
        if asked["thorough"] and not _right_on_other_inputs(session, trials):
            return
        timed = [i for i, t in enumerate(trials) if t.error_kind is None and not t.slow]

        def started(number: int) -> None:
            _say(event="time", index=timed[number])

        pulses = list(session.rounds([trials[i] for i in timed], protocol, started))
        for i in timed:
            _say(event="run", index=i)
            session.judge_again(trials[i])
            _tell(i, trials[i], pulses)
            if trials[i].error_kind is not None:
                return


def _right_on_other_inputs(session: MeasuringSession, trials: Sequence[Trial]) -> bool:
    """Tell whether all candidates that are right so far are right on other inputs, too. The first
    that is not is reported.
    """
    for numerics in dict.fromkeys(trial.numerics for trial in trials):
        for name in session.other_inputs(numerics):
            for i, trial in enumerate(trials):
                if trial.numerics is numerics and trial.error_kind is None and not trial.slow:
                    _say(event="run", index=i)
                    if not session.judge_once(trial, name):
                        _tell(i, trial)
                        return False
            _say(event="draw")
    return True


def _tell(index: int, trial: Trial, pulses: Sequence[float] = ()) -> None:
    _say(
        event="result",
        index=index,
        samples=trial.samples,
        references=list(pulses),
        slow=trial.slow,
        error_kind=trial.error_kind,
        error_text=trial.error_text,
    )


def _say(**event: Any) -> None:
    print(json.dumps(event), flush=True)


def _described(built: Built) -> dict[str, Any]:
    """Return a kernel without its text: that is in its binary, a file."""
    candidate = built.candidate
    return {
        "path": str(built.binary),
        "call": call_to_json(candidate.kernel.call),
        "numerics": str(candidate.numerics),
    }


def _trial(fields: Mapping[str, Any], workload: Workload) -> Trial:
    call = call_from_json(fields["call"], workload)
    return Trial(call, Path(fields["path"]), as_numerics(fields["numerics"]))


if __name__ == "__main__":
    main()
