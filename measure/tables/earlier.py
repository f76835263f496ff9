"""Reads what earlier versions wrote: export formats 1 to 3, and schema 0001.

In the first of each a record had the versions of all templates of its space
(``hopper.6,mma.1,simt.1``) and a ``session`` that nobody set, and a failure of the machine was kept
as one of the schedule. Up to format 3 decisions had other names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.measure.failures import status_of_old
from tilewright.measure.records.measurement import ErrorKind, Status
from tilewright.spaces.earlier_names import present_schedule

UNKNOWN_VERSION = 0
"""A version that no template ever had, for records that name none."""

_NEW = {
    "place": {"host": "", "device": "", "toolchain": ""},
    "proposal": None,
    "doubted": False,
}


def own_version(space_version: str, template: str) -> str:
    """Return the version of ``template`` among those of a space, such as ``mma.1``."""
    words = [word for word in space_version.split(",") if word.rpartition(".")[0] == template]
    return words[0] if words else f"{template}.{UNKNOWN_VERSION}"


def may_be_the_machine(error_kind: str | None, error_text: str, has_epilogue: bool) -> bool:
    """Tell whether a failure recorded as the schedule's may have been the machine's, or came from a
    check that was wrong about epilogues. Such a schedule is measured again.
    """
    if error_kind not in list(ErrorKind):
        return False
    kind = ErrorKind(error_kind)
    if kind is ErrorKind.WRONG:
        return has_epilogue
    return "ended early" in error_text or status_of_old(kind, error_text) is Status.LOST


def present_form(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of format 1 as one of today; what is malformed in it stays for others to
    find."""
    record = {**data, **_NEW}
    schedule, workload = record.get("schedule"), record.get("workload")
    if "session" in record:
        record["run"] = record.pop("session")
    if isinstance(schedule, Mapping) and isinstance(record.get("space_version"), str):
        template = str(schedule.get("template"))
        record["template_version"] = own_version(record.pop("space_version"), template)
    text = record.get("error_text")
    if record.get("status") == "error" and isinstance(workload, Mapping):
        parameters = workload.get("parameters")
        fused = bool(isinstance(parameters, Mapping) and parameters.get("epilogue"))
        if may_be_the_machine(record.get("error_kind"), str(text), fused):
            record["status"] = str(Status.LOST)
    return record


def present_names(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of up to format 3 with today's names of decisions."""
    if "schedule" not in data:
        return dict(data)
    return {**data, "schedule": present_schedule(data["schedule"])}


def present_run(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run of format 2 as one of today: there its configuration was its budget alone."""
    run = dict(data)
    if "budget" in run:
        run["configuration"] = run.pop("budget")
    return run
