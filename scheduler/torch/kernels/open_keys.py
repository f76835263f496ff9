"""Keys of workloads one of whose axes is open, ``m=*``: the operands of a call say how long it is.

An open key stands for a family (:mod:`scheduler.dispatch.family`), whose kernels are those of a
table. ``matmul m=* n=3072 k=768`` is one, and so is the text of a program whose declared shapes
have the name of the axis.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from tilewright.scheduler.dispatch.family import Family, family_of
from tilewright.scheduler.dispatch.profile import PROBED
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.workloads.calling import Calling, calling_of
from tilewright.spaces.workloads.workload import Workload

LINE = "; "
"""The end of a line of a program within a key."""
_OPEN = re.compile(r"\b([A-Za-z_]\w*)=\*(?:, )?")


def is_open(key: str) -> bool:
    """Tell whether one axis of a key is open."""
    return "=*" in key


@lru_cache(maxsize=4096)
def family_of_key(key: str) -> Family:
    """Return the family of an open key; :class:`InputError` if it has none."""
    axes = _OPEN.findall(key)
    if len(axes) != 1:
        raise InputError(f"{shown(key)} has {len(axes)} open axes; allowed: one, such as m=*")
    text = _OPEN.sub("", key).replace(f"axes {LINE}", "")
    return family_of((text, {}) if LINE in key else text, axes[0], PROBED)


def size_of(key: str, operands: Sequence[Any]) -> Any:
    """Return the length of the open axis of a key, by the shapes of operands: a number, or a
    symbol."""
    family = family_of_key(key)
    places = enumerate(family.inputs)
    place, dimension = next((place, each) for place, each in places if each is not None)
    shape = operands[place].shape if place < len(operands) else ()
    if dimension >= len(shape):
        raise InputError(f"operand {place} has shape {tuple(shape)}; allowed: as {family} has it")
    return shape[dimension]


def workload_at(key: str, operands: Sequence[Any]) -> Workload:
    """Return the workload of an open key for these operands."""
    return family_of_key(key).at(int(size_of(key, operands)))


def calling_at(key: str, size: Any) -> tuple[Calling, list[tuple[Any, ...]]]:
    """Return the arrays of an open key, and the shape of each, inputs first, at a size that may be
    a symbol."""
    family = family_of_key(key)
    calling = calling_of(family.at(2))
    arrays = (*calling.inputs, *calling.outputs)
    places = (*family.inputs, *family.outputs)
    return calling, [
        tuple(size if place == d else extent for d, extent in enumerate(array.shape))
        for array, place in zip(arrays, places, strict=True)
    ]
