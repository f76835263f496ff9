"""Check arrays that are passed to a kernel, and find their addresses."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.spaces.errors import InputError
from tilewright.spaces.workloads.array import Array

if TYPE_CHECKING:
    from tilewright.spaces.language.program import Entries
    from tilewright.spaces.workloads.workload import Workload

_address_at = ctypes.c_void_p.from_address
_PROBE = np.zeros(1)
_LARGE = 4 << 20  # bytes from which NumPy asks for huge pages
_LINE = 64  # bytes of a cache line


class Port:
    """Checks one array that is passed to a kernel, and finds its address.

    A NumPy array or a CPU torch tensor is used in place: nothing is copied. It must have the
    operand's shape, element type and memory order, and be dense unless the operand is a slice. A
    column-major operand is an array of the logical shape with Fortran strides. ``entries`` holds
    the limits of the elements if they are indices, else None.
    """

    entries: Entries | None = None
    last: int | None = None

    def __init__(self, operand: Array, output: bool = False) -> None:
        self.name = operand.name
        self.bytes = operand.span_bytes
        self.operand = operand
        self._output = output
        self._shape = operand.shape
        self._dtype = operand.element.numpy
        self._size = operand.element.bytes
        self._steps = operand.strides
        self._byte_steps = tuple(self._size * step for step in operand.strides)
        order = operand.order
        self._extents = tuple(operand.shape[dimension] for dimension in order)
        self._dimensions = None if order == tuple(sorted(order)) else np.argsort(order)

    def address(self, array: Any) -> int:
        """Return the address of the first element; :class:`InputError` if the array will not do."""
        if type(array) is np.ndarray or _is_plain(array, self.name):
            if array.dtype != self._dtype or array.shape != self._shape:
                if not np.iscomplexobj(array) or self._shape != (*array.shape, 2):
                    raise self._mismatch(array.dtype, array.shape)
                return self.address(parts_of(array))
            if array.strides != self._byte_steps:
                self._check_order(array.strides, self._byte_steps)
            if self._output and not array.flags.writeable:
                raise InputError(f"{self.name} is read-only; it is written to")
            address = address_of(array)
        else:
            address = self._tensor_address(array)
        if address % self._size:
            raise InputError(f"{self.name} is not aligned to its elements of {self._size} bytes")
        return address

    def empty_array(self) -> np.ndarray:
        """Return a new NumPy array that passes."""
        if self.operand.leading is not None:
            memory = np.empty(self.bytes, np.uint8)
            return np.ndarray(self._shape, self._dtype, memory.data, 0, self._byte_steps)
        array = np.empty(self._extents, self._dtype)
        return array if self._dimensions is None else array.transpose(self._dimensions)

    def empty_tensor(self) -> Any:
        """Return a new torch tensor that passes; a large one begins at a line of memory of NumPy's,
        which asks for huge pages."""
        torch = sys.modules["torch"]
        kind = getattr(torch, self.operand.dtype)
        if self.bytes < _LARGE:
            return torch.empty_strided(self._shape, self._steps, dtype=kind)
        memory = np.empty(self.bytes + _LINE, np.uint8)
        first = -address_of(memory) % _LINE
        elements = torch.from_numpy(memory[first : first + self.bytes]).view(kind)
        return elements.as_strided(self._shape, self._steps, 0)

    def _tensor_address(self, tensor: Any) -> int:
        if not is_tensor(tensor):
            raise _no_array(tensor, self.name)
        if not tensor.is_cpu:
            raise InputError(f"{self.name} is on {tensor.device}; allowed: cpu")
        return self._memory(tensor, getattr(sys.modules["torch"], self.operand.dtype))

    def _memory(self, tensor: Any, kind: Any) -> int:
        """Return the address of the elements of a tensor, which must be of this ``kind`` and lie as
        they are wanted. A tensor may have none: a sparse or a fake one, one within
        ``torch.vmap``."""
        try:
            if tensor.is_complex() and self._shape == (*tensor.shape, 2):
                return self._memory(self._parts_of(tensor), kind)
            address = int(tensor.data_ptr())
            if tensor.dtype is not kind or tensor.shape != self._shape:
                raise self._mismatch(tensor.dtype, tuple(tensor.shape))
            if tensor.stride() != self._steps:
                self._check_order(tensor.stride(), self._steps)
            if tensor.requires_grad:
                self._check_gradients()
        except RuntimeError:
            address = 0
        if not address:
            layout = str(tensor.layout).removeprefix("torch.")
            raise InputError(
                f"{self.name} is a {type(tensor).__name__} ({layout}) without elements in memory; "
                "allowed: a dense tensor"
            )
        if tensor.is_neg():
            raise InputError(f"{self.name} is a negated view; resolve_neg() gives its values")
        return address

    def _parts_of(self, tensor: Any) -> Any:
        """Return the real and imaginary parts of a tensor, side by side where they are."""
        if tensor.is_conj():
            raise InputError(f"{self.name} is a conjugated view; resolve_conj() gives its values")
        return sys.modules["torch"].view_as_real(tensor)

    def _check_gradients(self) -> None:
        if sys.modules["torch"].is_grad_enabled():
            raise InputError(
                f"{self.name} requires gradients, kernels have none; "
                "detach() it or call under torch.no_grad()"
            )

    def _mismatch(self, dtype: object, shape: tuple[int, ...]) -> InputError:
        return InputError(
            f"{self.name} is {dtype} of shape {shape}; "
            f"allowed: {self.operand.dtype} of shape {self._shape}"
        )

    def _check_order(self, found: tuple[int, ...], wanted: tuple[int, ...]) -> None:
        """Check strides; the one along a dimension of one element means nothing."""
        for extent, step, right in zip(self._shape, found, wanted, strict=True):
            if extent > 1 and step != right:
                raise InputError(f"{self.name} has strides {found}; allowed: {wanted}")


class IndexPort(Port):
    """Checks an array of indices: each element must be within its limits, too, and the ``last`` one
    be that number, if there is one."""

    def __init__(self, operand: Array, last: int | None = None) -> None:
        super().__init__(operand)
        self.entries = getattr(operand, "drawn", None)
        self.last = last

    def address(self, array: Any) -> int:
        """Return the address of the first element; :class:`InputError` if the array will not do."""
        address = super().address(array)
        check_indices(self.operand, np.asarray(array), self.last)
        return address


def holds_indices(operand: Array) -> bool:
    """Return True if the elements of an operand are indices, which have limits."""
    return getattr(operand, "drawn", None) is not None


def ends_of(workload: Workload) -> Mapping[str, int]:
    """Map each operand that points to where rows begin to the number of all entries."""
    from tilewright.spaces.language.ranges import pointers_of

    extent = workload.program.extent
    return {name: extent[axis] for name, axis in pointers_of(workload.program).items()}


def check_indices(operand: Array, array: np.ndarray, last: int | None = None) -> None:
    """Raise :class:`InputError` for an index beyond its limit, or out of order, or for another
    ``last`` one than is wanted."""
    from tilewright.spaces.language.inputs import check_end, check_entries
    from tilewright.spaces.language.program import Operand

    assert isinstance(operand, Operand)
    check_entries(operand, array)
    if last is not None:
        check_end(operand.name, array, last)


def outputs_of(ports: Sequence[Port], out: Any) -> tuple[Any, ...]:
    """Return the arrays for several outputs in ``out``: a sequence in their order, or a mapping by
    name; :class:`InputError` if there is not one for each."""
    names = [port.name for port in ports]
    given: Mapping[str, Any] = {}
    if isinstance(out, Mapping):
        given = out
    elif isinstance(out, tuple | list) and len(out) == len(names):
        given = dict(zip(names, out, strict=True))
    if set(given) != set(names):
        raise InputError(f"out is to be {', '.join(names)}, each once, in this order or by name")
    return tuple(given[name] for name in names)


def check_apart(ports: Sequence[Port], addresses: Sequence[int], outputs: int) -> None:
    """Raise :class:`InputError` if one of the last ``outputs`` arrays shares memory with another
    one. ``addresses`` are those of all ``ports``."""
    first = len(ports) - outputs
    for place in range(first, len(ports)):
        target, written = addresses[place], ports[place]
        beyond = target + written.bytes
        for port, address in zip(ports[:place], addresses):  # noqa: B905
            if address < beyond and target < address + port.bytes:
                name = "out" if outputs == 1 else written.name
                raise InputError(f"{name} shares memory with {port.name}")


def in_order(
    ports: Sequence[Port], arrays: Sequence[Any], named: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Return the arrays for ``ports`` of those given by position and those by name."""
    names = [port.name for port in ports]
    given = dict(zip(names, arrays, strict=False)) | dict(named)
    if len(given) != len(arrays) + len(named) or set(given) != set(names):
        got = ", ".join([f"{len(arrays)} by position", *named])
        hint = "; by name, out is where the result goes" if "out" in names else ""
        raise InputError(f"the kernel takes {', '.join(names)}, each once; got {got}{hint}")
    return tuple(given[name] for name in names)


def shape_of(array: Any, name: str) -> tuple[int, ...]:
    """Return the shape of a NumPy array or torch tensor; :class:`InputError` for anything else."""
    try:
        return array.shape
    except AttributeError:
        raise _no_array(array, name) from None


def _no_array(array: object, name: str) -> InputError:
    kind = type(array).__name__
    return InputError(f"{name} is a {kind}; allowed: a NumPy array or a torch tensor")


def _is_plain(array: object, name: str) -> bool:
    """Return True for a NumPy array or subclass. Raises :class:`InputError` for a masked array."""
    if not isinstance(array, np.ndarray):
        return False
    if isinstance(array, np.ma.MaskedArray):
        raise InputError(f"{name} is a masked array; allowed: a plain one, as filled() gives it")
    return True


def parts_of(array: np.ndarray) -> np.ndarray:
    """Return the real and imaginary parts of a complex array, side by side where they are."""
    real = array.real
    return np.lib.stride_tricks.as_strided(
        real, (*array.shape, 2), (*array.strides, real.itemsize), writeable=array.flags.writeable
    )


def address_of(array: np.ndarray) -> int:
    """Return the address of an array's first element.

    NumPy's C API lays an array object out as the object's head and then the address of its data
    (PyArrayObject_fields). Reading that takes a tenth of the time of ``array.ctypes.data``.
    """
    return _address_at(id(array) + object.__basicsize__).value or 0


def _slow_address_of(array: np.ndarray) -> int:
    return int(array.ctypes.data)


if sys.implementation.name != "cpython" or address_of(_PROBE) != _slow_address_of(_PROBE):
    address_of = _slow_address_of


def is_tensor(array: object) -> bool:
    """Return True for a torch tensor. Does not import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)
