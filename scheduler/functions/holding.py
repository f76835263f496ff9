"""Functions that hold some of their arrays, such as a weight and its tables of indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.scheduler.functions.arrays import Port, in_order
from tilewright.scheduler.functions.kernel_call import KernelCall, new_outputs
from tilewright.spaces.errors import InputError, shown

if TYPE_CHECKING:
    from tilewright.scheduler.functions.cpu_function import CpuFunction


class HoldingFunction:
    """A ``function`` of those arrays that it does not hold. It can be copied and pickled.

    ``call`` is its kernel, which checks no indices of arrays that are ``held``: whoever makes one
    has checked them. They are used in place, so whoever changes one changes results; a kernel never
    leaves its arrays.
    """

    def __init__(self, function: CpuFunction, call: KernelCall, held: Mapping[str, Any]) -> None:
        self.function, self.held = function, held
        self._call = call.fastest
        self._outputs = call.outputs
        self._given = [held.get(port.name) for port in call.given]
        places = [n for n, port in enumerate(call.given) if port.name not in held]
        self._places = places
        self._open = [call.given[place] for place in places]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the function, and the arrays, which are checked where they are unpickled."""
        return _held_by, (self.function, dict(self.held))

    def __call__(self, /, *arrays: Any, out: Any = None, **named: Any) -> Any:
        """Call the kernel on the other arrays, by position or by name. Without ``out``, outputs are
        of the first one's kind."""
        if named or len(arrays) != len(self._open):
            arrays = in_order(self._open, arrays, named)
        given = list(self._given)
        for place, array in zip(self._places, arrays, strict=True):
            given[place] = array
        if out is None:
            out = new_outputs(self._outputs, arrays or given)
        return self._call(*given, out=out)


def _held_by(function: CpuFunction, held: Mapping[str, Any]) -> HoldingFunction:
    return function.holding(**held)


def check_held(ports: Sequence[Port], held: Mapping[str, Any]) -> None:
    """Raise :class:`InputError` for an array that its port refuses, or that no port is for."""
    known = {port.name: port for port in ports}
    for name, array in held.items():
        if name not in known:
            raise InputError(f"the kernel takes no {shown(name)}; it takes {', '.join(known)}")
        known[name].address(array)
