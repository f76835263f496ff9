"""Calls of kernels as JSON for other processes: a kernel without its text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tilewright.spaces.cuda.tensor_map import TensorMapSpec
from tilewright.spaces.kernel import Argument, Buffer, Call, Launch, OpenGrid, Role
from tilewright.spaces.workloads.workload import Workload


def call_to_json(call: Call) -> dict[str, Any]:
    """JSON values; of arrays only their names, for who reads it knows the workload."""
    return {
        "entry": call.entry,
        "arguments": [[a.array.name, a.role, a.open] for a in call.arguments],
        "workspace_bytes": call.workspace_bytes,
        "workspace_zeroed": call.workspace_zeroed,
        "launches": [asdict(launch) for launch in call.launches],
        "open_axis": call.open_axis,
        "extent": call.extent,
    }


def call_from_json(data: Mapping[str, Any], workload: Workload) -> Call:
    """Return the call of a kernel for ``workload``, whose arrays have the extent of an open axis
    that the call has."""
    known = {array.name: array for array in workload.operands}
    return Call(
        data["entry"],
        tuple(Argument(known[name], Role(role), at) for name, role, at in data["arguments"]),
        data["workspace_bytes"],
        data["workspace_zeroed"],
        tuple(_launch(fields) for fields in data["launches"]),
        data["open_axis"],
        data["extent"],
    )


def _launch(fields: Mapping[str, Any]) -> Launch:
    maps = tuple(TensorMapSpec(**_tuples(spec)) for spec in fields["tensor_maps"])
    buffers = tuple(Buffer(**buffer) for buffer in fields["buffers"])
    grid = fields["open_grid"]
    made = {"tensor_maps": maps, "buffers": buffers, "open_grid": grid and OpenGrid(**grid)}
    return Launch(**_tuples(fields) | made)


def _tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return JSON's lists as the tuples they were."""
    return {name: tuple(v) if isinstance(v, list) else v for name, v in fields.items()}
