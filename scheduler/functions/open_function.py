"""Call one kernel with any number of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tilewright.scheduler.functions.arrays import shape_of
from tilewright.spaces.backends import backend
from tilewright.spaces.errors import InputError
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.calling import Calling, calling_of


class OpenFunction:
    """A kernel that takes the extent of ``axis`` at each call, built and loaded.

    Example::

        space = space_for(workload("matmul m=4096 n=3072 k=768"), target)
        up = OpenFunction(space, schedule, "m", (0, None), (0,))
        c = up(a, b)  # a has 1 to 4096 rows

    ``inputs`` and ``outputs`` have, of each array in the order of calls, the dimension that is the
    axis; None if the array does not have it. The workload of the ``space`` has the largest extent.
    Raises :class:`InputError` if the schedule has no such kernel, and for arrays that do not fit.
    """

    def __init__(
        self,
        space: Space,
        schedule: Schedule,
        axis: str,
        inputs: Sequence[int | None],
        outputs: Sequence[int | None],
    ) -> None:
        self.workload, self.schedule, self.axis = space.workload, schedule, axis
        function = backend(space.target.kind).part("function")
        self._called = function.opened(space, schedule, space.lower_open(schedule, axis))
        self._calling = calling_of(space.workload)
        self._places = (*inputs, *outputs)
        self._names = [array.name for array in self._calling.inputs]
        self._sized, self._dimension = next(
            (place, dimension) for place, dimension in enumerate(inputs) if dimension is not None
        )
        self.largest = self._calling.inputs[self._sized].shape[self._dimension]
        self._each = space.workload.extents[axis] // self.largest
        self._calls: dict[int, Callable[..., Any]] = {}

    def __call__(self, /, *arrays: Any, out: Any = None, **on: Any) -> Any:
        """Return the result for the given arrays, written to ``out`` if that is given; ``on`` a
        ``stream`` of a GPU, if that is given."""
        size = self._size(arrays)
        call = self._calls.get(size)
        if call is None:
            call = self._calls[size] = self._at(size)
        return call(*arrays, **on) if out is None else call(*arrays, out=out, **on)

    def __repr__(self) -> str:
        return f"<OpenFunction {self.axis}=1 to {self.largest} of {self.workload}: {self.schedule}>"

    def _size(self, arrays: Sequence[Any]) -> int:
        if len(arrays) != len(self._names):
            takes = ", ".join(self._names)
            raise InputError(f"the kernel takes {takes}, each once; got {len(arrays)} by position")
        name = self._names[self._sized]
        shape = shape_of(arrays[self._sized], name)
        size = int(shape[self._dimension]) if len(shape) > self._dimension else 0
        if not 1 <= size <= self.largest:
            raise InputError(
                f"{name} has the shape {tuple(shape)}; allowed: "
                f"1 to {self.largest} at place {self._dimension}"
            )
        return size

    def _at(self, size: int) -> Callable[..., Any]:
        arrays = (*self._calling.inputs, *self._calling.outputs)
        sized = [_resized(*each, size) for each in zip(arrays, self._places, strict=True)]
        count = len(self._calling.inputs)
        return self._called(
            size * self._each, Calling(sized[:count], sized[count:], self._calling.order)
        )


def _resized(array: Array, dimension: int | None, size: int) -> Array:
    """Return an array with another extent of its outermost dimension."""
    if dimension is None:
        return array
    shape = (*array.shape[:dimension], size, *array.shape[dimension + 1 :])
    return replace(array, shape=shape)
