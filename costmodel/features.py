"""Physical features of (workload, schedule, target), whole populations at a time.

Names are stable and say what they are: ``schedule.*`` from the template's quantities,
``reported.*`` from those that it has beside them, ``roofline.*`` from the analytic estimate,
``workload.*``, ``target.*``, and the decisions themselves as ``<template>.<decision>``. Sizes come
as base-2 logarithms, traffic per useful FLOP (``Workload.work``: per element moved where there are
none), so that one model can serve many shapes and devices. A model keeps the list of names it was
trained on and asks for them; a name that a space does not have is NaN there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from math import log2, prod

import numpy as np

from tilewright.costmodel.roofs.peaks import peaks_for
from tilewright.costmodel.roofs.roofline import ideal_seconds, roofline_seconds
from tilewright.spaces.backends import backend, kinds
from tilewright.spaces.quantities import QUANTITIES
from tilewright.spaces.space import Population, Space
from tilewright.spaces.target import Target
from tilewright.spaces.validation.text import is_plain
from tilewright.spaces.workloads.matmul import Matmul
from tilewright.spaces.workloads.workload import Workload

FEATURE_VERSION = 1
"""Rises when a name comes to mean something else: older models are then refused."""

Column = np.ndarray | float
"""Values of one feature: one a schedule, or one for all."""

PER_FLOP = (
    "flops",
    "instructions",
    "register_bytes",
    "near_bytes",
    "middle_bytes",
    "main_bytes",
    "packing_bytes",
)
PLAIN = tuple(name for name in QUANTITIES if name.endswith("_fraction"))
LONGEST_NAME = 200
SMALLEST = 2.0**-40  # stands for zero under a logarithm


def features(space: Space, population: Population) -> dict[str, Column]:
    """Return all features of each schedule of ``population``, by name."""
    quantities = space.quantities(population)
    columns: dict[str, Column] = {}
    with np.errstate(all="ignore"):  # what a template does not report is NaN, and stays so
        columns.update(_schedule_features(quantities, space.workload))
        columns.update(_roofline_features(quantities, space))
        columns.update(_decision_features(space, population))
    columns.update(workload_features(space.workload))
    columns.update(target_features(space.target))
    return columns


def feature_matrix(space: Space, population: Population, names: Sequence[str]) -> np.ndarray:
    """Return the features called ``names``, float32 [schedules, names]; NaN where there is none."""
    return as_matrix(features(space, population), names, len(population))


def as_matrix(columns: Mapping[str, Column], names: Sequence[str], rows: int) -> np.ndarray:
    """Columns side by side, float32 [rows, names]; NaN for unknown names and infinite values."""
    matrix = np.empty((rows, len(names)), dtype=np.float32, order="F")
    for i, name in enumerate(names):
        matrix[:, i] = columns.get(name, np.nan)
    matrix[~np.isfinite(matrix)] = np.nan
    return matrix


def is_feature(name: str) -> bool:
    """Return True if a space of this version may have a feature called ``name``.

    The names for schedules, rooflines and all kinds of targets are fixed. Axes, operands,
    templates, decisions and further quantities of templates are named by others, so any plain name
    passes.
    """
    kind, _, rest = name.partition(".")
    if kind == "target":
        classes = (backend(kind).part("target") for kind in kinds())
        return any(field.name == rest for known in classes for field in fields(known))
    if kind in _KNOWN:
        return rest in _KNOWN[kind]
    return bool(kind and rest) and is_plain(name, LONGEST_NAME)


@lru_cache
def workload_features(workload: Workload) -> Mapping[str, float]:
    """Return the features of the workload alone: extents, traffic, types, memory order,
    functions."""
    result = {
        "workload.intensity": log2(workload.work / max(workload.least_bytes, 1)),
        "workload.output_bytes": float(workload.outputs[0].element.bytes),
        "workload.epilogue_functions": float(len(workload.functions)),
    }
    if workload.matmul:
        result |= _matmul_features(workload.matmul)
    return result


def _matmul_features(matmul: Matmul) -> dict[str, float]:
    """List the loops by name, and how the factors lie in memory."""
    reductions = {axis.name for axis in matmul.axes if axis.reduction}
    free = prod(axis.extent for axis in matmul.axes if not axis.reduction)
    summed = prod(axis.extent for axis in matmul.axes if axis.reduction)
    result = {f"workload.{axis.name}": log2(axis.extent) for axis in matmul.axes}
    result |= {
        "workload.free": log2(free),
        "workload.reduction": log2(summed),
        "workload.epilogue_bytes": sum(o.bytes for o in matmul.epilogue_inputs) / free,
    }
    for operand in matmul.factors:
        contiguous = operand.axes[operand.order[-1]] if operand.order else ""
        result[f"workload.{operand.name}.bytes"] = float(operand.element.bytes)
        result[f"workload.{operand.name}.along_reduction"] = float(contiguous in reductions)
    return result


@lru_cache
def target_features(target: Target) -> Mapping[str, float]:
    """Return every number in the target's description, compressed, by its field's name."""
    return {
        f"target.{name}": float(_compress(np.asarray(value, dtype=np.float64)))
        for name, value in target.to_json().items()
        if isinstance(value, int | float)
    }


def _schedule_features(
    quantities: Mapping[str, np.ndarray], workload: Workload
) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    for name, values in quantities.items():
        if name in PER_FLOP:
            values = np.log2(np.maximum(values / workload.work, SMALLEST))
        elif name == "epilogue_elements":
            values = values / max(sum(o.size for o in workload.outputs), 1)
        elif name not in PLAIN:
            values = _compress(values)
        if name != "useful_flops":
            columns[_schedule_name(name)] = values
    return columns


def _schedule_name(quantity: str) -> str:
    """Return the name of the feature for a quantity."""
    if quantity not in QUANTITIES:
        return f"reported.{quantity}"
    if quantity in PER_FLOP:
        return f"schedule.{quantity}_per_flop"
    return f"schedule.{'epilogue_waste' if quantity == 'epilogue_elements' else quantity}"


def _roofline_features(quantities: Mapping[str, np.ndarray], space: Space) -> dict[str, Column]:
    peaks = peaks_for(space.workload, space.target)
    seconds = roofline_seconds(space.workload, quantities, peaks)
    ideal = ideal_seconds(space.workload, peaks)
    return {
        "roofline.seconds": np.log2(seconds),
        "roofline.slowdown": np.log2(seconds / ideal),
    }


def _decision_features(space: Space, population: Population) -> dict[str, Column]:
    columns = space.decision_columns(population)
    templates = columns.pop("template")
    result: dict[str, Column] = {
        f"template.{name}": (templates == i).astype(np.float64)
        for i, name in enumerate(space.templates)
    }
    result.update({name: _compress(values) for name, values in columns.items()})
    return result


def _compress(values: np.ndarray) -> np.ndarray:
    """Return ``log2(1 + |v|)`` with the sign of v: the logarithm's order, and zero stays zero."""
    return np.copysign(np.log2(1.0 + np.abs(values)), values)


_KNOWN = {
    "schedule": {
        _schedule_name(name).removeprefix("schedule.")
        for name in QUANTITIES
        if name != "useful_flops"
    },
    "roofline": {"seconds", "slowdown"},
}
