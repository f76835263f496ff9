"""A family: workloads that differ in the extent of one axis alone.

The arrays' points along the axis lie one after the other in memory, and a piece of an array is
again a dense array. Where what a kernel computes at one point depends on no other point, a call of
any size can be cut into pieces, each computed by a kernel of the piece's size. Where all points
are reduced, such as the keys of attention, only kernels that take their number serve other sizes.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.language.program import Program
from tilewright.spaces.language.reading.source import statements
from tilewright.spaces.language.tree import AxisValue, Expression, Read
from tilewright.spaces.operators import EXAMPLE, parameters_of
from tilewright.spaces.operators import workload as make_workload
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.calling import calling_of
from tilewright.spaces.workloads.open_axis import why_not_outermost
from tilewright.spaces.workloads.workload import PROGRAM, Workload

if TYPE_CHECKING:
    from tilewright.scheduler.dispatch.profile import Profile


OPEN = "*"
"""The extent of an axis that calls give."""
KEY_SIZE = 1009
"""The size by whose workload a family is known; a prime, which few layers have."""


@dataclass(frozen=True)
class Family:
    """The workloads of ``operator`` and ``parameters`` with any size of ``axis``.

    ``inputs`` and ``outputs`` have, of each array in the order of calls, the dimension that is the
    axis; None if the array does not have it. Calls can be cut into pieces, or filled up, if points
    are ``independent`` of each other. The workload itself calls the axis
    ``own_axis``: ``m`` of a product, whatever name a program has for its rows.
    """

    operator: str
    parameters: tuple[tuple[str, Any], ...]
    axis: str
    inputs: tuple[int | None, ...] = ()
    outputs: tuple[int | None, ...] = ()
    independent: bool = True
    own_axis: str = ""
    _made: dict[int, Workload] = field(default_factory=dict, compare=False, repr=False)

    def at(self, size: int) -> Workload:
        """Return the workload of so many points of the axis."""
        if size not in self._made:
            named = dict(self.parameters) | {self.axis: size}
            self._made[size] = make_workload(self.operator, **named)
        return self._made[size]

    @property
    def key(self) -> str:
        """The identity of the family, in whatever words it was written: the digest of its workload
        of so many points as no other axis should have."""
        return self.at(KEY_SIZE).digest

    def __str__(self) -> str:
        first = self.operator if self.operator.isidentifier() else f'"{self.operator}"'
        words = (f"{name}={shlex.quote(str(value))}" for name, value in self.parameters)
        return " ".join((first, *words))

    def moved_bytes(self, size: int) -> int:
        """Return the bytes of all arrays with the axis, of so many points."""
        calling = calling_of(self.at(size))
        pairs = [
            *zip(calling.inputs, self.inputs, strict=True),
            *zip(calling.outputs, self.outputs, strict=True),
        ]
        return sum(array.bytes for array, dimension in pairs if dimension is not None)


Described = tuple[str, Mapping[str, Any]]
"""An operator, or the text of a program, and its parameters."""


def family_of(given: Workload | str | Described, axis: str, profile: Profile) -> Family:
    """Return the family of a workload along ``axis``; the extent that it has there does not matter,
    and text may leave it out.

    Raises :class:`InputError` for an unknown axis, and for one whose points depend on each other,
    unless all of them are reduced, or lie apart in memory.
    """
    if not axis.isidentifier():
        raise InputError(
            f"axis={shown(axis)} is no name; allowed: an axis of the workload, such as m"
        )
    operator, parameters = described(given)
    parameters.pop(axis, None)
    made = Family(operator, tuple(parameters.items()), axis)
    most = max(profile.last, 2)
    small, large = made.at(1), made.at(most)
    extents, before = large.written.extent, small.written.extent
    changed = [name for name, extent in extents.items() if before.get(name, 1) != extent]
    if len(changed) != 1 or extents[changed[0]] != most:
        axes = ", ".join(extents)
        raise InputError(
            f"axis={shown(axis)} is no axis of {operator[:80]}; allowed: one of {axes}"
        )
    one, many = calling_of(small), calling_of(large)
    inputs = _dimensions(one.inputs, many.inputs, axis)
    outputs = _dimensions(one.outputs, many.outputs, axis)
    independent = _is_independent(small, large, changed[0], inputs | outputs)
    if not any(place is not None for place in inputs.values()):
        raise InputError(f"no input has the axis {axis}; allowed: an axis of an input")
    places = (*inputs.values(),), (*outputs.values(),)
    further = made.at(most + 1).extents
    own_axis = next(name for name, extent in large.extents.items() if further.get(name) != extent)
    return Family(operator, made.parameters, axis, *places, independent, own_axis)


def open_axis(given: Workload | str | Described) -> str:
    """Return the axis that a workload leaves open, as in ``m=*``; ``m`` if it leaves none."""
    _, parameters = described(given)
    found = [name for name, value in parameters.items() if value == OPEN]
    if len(found) > 1:
        raise InputError(f"{', '.join(found)} are open; allowed: one axis, such as m=*")
    return found[0] if found else "m"


def _dimensions(one: Sequence[Array], many: Sequence[Array], axis: str) -> dict[str, int | None]:
    """Return the dimension of each array that is the axis; None of arrays without it."""
    return {
        after.name: _dimension(before, after, axis) for before, after in zip(one, many, strict=True)
    }


def described(given: Workload | str | Described) -> tuple[str, dict[str, Any]]:
    """Return the operator and its parameters, from which workloads of other sizes can be made."""
    if isinstance(given, tuple):
        return _in_a_line(given[0]), dict(given[1])
    if isinstance(given, str):
        if re.match(r"\s*\w+\s*\[", given):  # a program by itself
            return _in_a_line(given), {}
        try:
            name, *words = shlex.split(given) or [""]
        except ValueError as error:
            raise InputError(f"{shown(given)}: {error}; allowed: text, {EXAMPLE}") from None
        return _in_a_line(name), parameters_of(words)
    if not isinstance(given, Workload):
        raise InputError(
            f"{shown(given)} has no other sizes; allowed: a workload's text, {EXAMPLE}"
        )
    parameters = dict(given.parameters)
    if not given.matmul:
        operator = given.operator if given.operator != PROGRAM else str(parameters.pop("text", ""))
        if operator and parameters:
            return operator, parameters
    elif given.asked is None:
        return given.operator, parameters
    raise InputError(f"{shown(given)} was made from a program; allowed: its text, {EXAMPLE}")


def _in_a_line(operator: str) -> str:
    """Return an operator's name as it is, and the text of a program in one line."""
    if "\n" not in operator:
        return operator
    return "; ".join(statement.text for statement in statements(operator))


def _dimension(before: Array, after: Array, axis: str) -> int | None:
    """Return the dimension of an array that grows with the axis; :class:`InputError` if its points
    do not lie one after the other."""
    if len(before.shape) != len(after.shape):
        raise InputError(
            f"{after.name} has no dimension {axis} where {axis}=1; allowed: other axes"
        )
    sizes = list(zip(before.shape, after.shape, strict=True))
    grown = [place for place, (less, more) in enumerate(sizes) if less != more]
    if not grown:
        return None
    if len(grown) > 1 or not after.is_outermost(grown[0]):
        raise InputError(
            f"{axis} is not the outermost axis of {after.name} in memory; allowed: one whose "
            "points lie one after the other"
        )
    return grown[0]


def rows(place: int, first: int, end: int) -> tuple[slice, ...]:
    """Return the index of some points of an array whose dimension ``place`` is the axis."""
    return (*[slice(None)] * place, slice(first, end))


def _is_independent(
    small: Workload, large: Workload, axis: str, places: Mapping[str, int | None]
) -> bool:
    """Tell whether no point of the axis depends on other ones: they do if all of them are reduced.

    Raises :class:`InputError` if points depend on some of the others, or on their number.
    """
    program = large.written
    if _lines(small) != _lines(large):
        raise InputError(f"the program computes with the extent of {axis}; allowed: other axes")
    if _is_reduced(program, axis):
        if reason := why_not_outermost(program, axis, reduced=True):
            raise InputError(f"{reason}; allowed: other axes")
        return False
    dimensions = dict(places)
    for condition in program.conditions:
        if not _is_plain(condition, axis, dimensions):
            raise InputError(f"{axis} is in the condition {condition}; allowed: other axes")
    dimensions |= {s.name: s.axes.index(axis) for s in program.stages if axis in s.axes}
    for stage in program.stages:
        if axis in stage.over or not _is_plain(stage.body, axis, dimensions):
            raise InputError(
                f"points of {axis} depend on each other in {str(stage)[:80]}; "
                f"allowed: an axis that is only an index [{axis}]"
            )
    return True


def _is_reduced(program: Program, axis: str) -> bool:
    """Tell whether all points of an axis are reduced before anything is written."""
    written = (program.stage[output.name].axes for output in program.outputs)
    return any(axis in stage.over for stage in program.stages) and not any(
        axis in axes for axes in written
    )


def _lines(workload: Workload) -> list[str]:
    return [str(each) for each in (*workload.written.conditions, *workload.written.stages)]


def _is_plain(node: Expression, axis: str, dimensions: Mapping[str, int | None]) -> bool:
    """Return True if the axis occurs only as the index of its own dimension of arrays."""
    if isinstance(node, AxisValue):
        return node.name != axis
    if not isinstance(node, Read):
        return all(_is_plain(child, axis, dimensions) for child in node.children)
    own = dimensions.get(node.name)
    return all(
        index == AxisValue(axis) if place == own else _is_plain(index, axis, dimensions)
        for place, index in enumerate(node.indices)
    )
