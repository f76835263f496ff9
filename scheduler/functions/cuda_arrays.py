"""Check arrays on a GPU: torch tensors, DLPack, ``__cuda_array_interface__``."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from tilewright.scheduler.functions import dlpack
from tilewright.scheduler.functions.arrays import Port, is_tensor
from tilewright.spaces.errors import InputError
from tilewright.spaces.workloads.array import Array

ALIGNMENT = 16  # bytes that kernels load at once
CUDA_DEVICES = (2, 13)  # kDLCUDA and kDLCUDAManaged of DLPack

_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = (ctypes.py_object, ctypes.c_char_p)


class DevicePort(Port):
    """Checks one array on a GPU, and finds its address; see
    :class:`scheduler.functions.arrays.Port`."""

    def __init__(self, operand: Array, output: bool = False) -> None:
        super().__init__(operand, output)
        self._kind = "float32" if operand.dtype == "tfloat32" else operand.dtype
        self._tensor_kind: Any = None

    def device_address(self, array: Any, stream: int) -> int:
        """Return the address of the first element; :class:`InputError` if the array will not do.
        ``stream`` is the handle of the stream that is going to use it."""
        if is_tensor(array):
            address = self._memory(array, self._tensor_kind or self._torch_kind())
            if not array.is_cuda:
                raise InputError(f"{self.name} is on {array.device}; allowed: cuda")
            return address
        if hasattr(array, "__cuda_array_interface__"):
            return self._from_interface(array.__cuda_array_interface__)
        if hasattr(array, "__dlpack__"):
            return self._from_dlpack(array, stream)
        raise InputError(
            f"{self.name} is a {type(array).__name__}; allowed: a CUDA torch tensor, or an array "
            "with DLPack or __cuda_array_interface__"
        )

    def on_host(self, tensor: Any) -> np.ndarray:
        """Return the elements of a torch tensor, on the host; :class:`InputError` if it will not
        do."""
        self._memory(tensor, self._torch_kind())
        copied: np.ndarray = tensor.cpu().numpy()
        return copied

    def empty_like(self, tensor: Any) -> Any:
        """Return a new torch tensor that passes, on the GPU of ``tensor``."""
        return sys.modules["torch"].empty_strided(
            self._shape, self._steps, dtype=self._torch_kind(), device=tensor.device
        )

    def _torch_kind(self) -> Any:
        if self._tensor_kind is None:
            self._tensor_kind = getattr(sys.modules["torch"], self._kind)
        return self._tensor_kind

    def _from_interface(self, facts: dict[str, Any]) -> int:
        """Version 3 of Numba's "CUDA Array Interface"."""
        if facts.get("mask") is not None:
            raise InputError(f"{self.name} is a masked array; allowed: a plain one")
        shape, typestr = tuple(facts["shape"]), facts["typestr"]
        if typestr != self._dtype.str or shape != self._shape:
            raise self._mismatch(typestr, shape)
        strides = facts.get("strides")
        self._check_order(
            tuple(strides) if strides else _dense(shape, self._size), self._byte_steps
        )
        address, read_only = facts["data"]
        if self._output and read_only:
            raise InputError(f"{self.name} is read-only; it is written to")
        return int(address)

    def _from_dlpack(self, array: Any, stream: int) -> int:
        """Reads the array's description and leaves the array with its owner."""
        if array.__dlpack_device__()[0] not in CUDA_DEVICES:
            raise InputError(f"{self.name} is not on a GPU; allowed: cuda")
        capsule = array.__dlpack__(stream=stream or 1)  # 1 is CUDA's default stream
        tensor = dlpack.Tensor.from_address(_pointer_of(capsule, b"dltensor") or 0)
        shape = tuple(tensor.shape[: tensor.rank])
        kind = dlpack.KINDS.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
        if kind != self._kind or shape != self._shape:
            raise self._mismatch(kind or f"DLPack type {tensor.code}", shape)
        strides = tuple(tensor.strides[: tensor.rank]) if tensor.strides else _dense(shape, 1)
        self._check_order(strides, self._steps)
        return int((tensor.data or 0) + tensor.offset)


class TensorGuards:
    """A fast check that tensors are like others that passed all checks before.

    ``alike(*tensors)`` is true if the tensors are distinct, have the same types, element types,
    devices, shapes and strides, and none needs gradients. Addresses may differ. Guards of
    torch.compile compare all that in one call, in a quarter of the time that reading it from Python
    takes. Inputs and outputs come in one order.
    """

    __slots__ = ("alike", "current_stream")

    def __init__(self, tensors: Sequence[Any]) -> None:
        """Guard ``tensors`` that are :func:`comparable`."""
        self.alike = _guards(tensors)
        if any(tensor.requires_grad for tensor in tensors):
            on = sys.modules["torch"].is_grad_enabled
            same = self.alike  # in some versions of torch this asks for the flag only
            self.alike = lambda *others: not on() and same(*others)
        self.current_stream = partial(_raw_stream(), tensors[0].get_device())


def comparable(arrays: Sequence[Any]) -> bool:
    """Return True if a :class:`TensorGuards` can be made of these arrays.

    That takes distinct tensors of no subclass, and a torch that has the guards.
    """
    torch = sys.modules["torch"]
    kinds = (torch.Tensor, torch.nn.Parameter)
    distinct = len({id(array) for array in arrays}) == len(arrays)
    return distinct and all(type(array) in kinds for array in arrays) and _has_guards()


def _guards(tensors: Sequence[Any]) -> Callable[..., bool]:
    found = sys.modules["torch"]._C._dynamo.guards.TensorGuards(
        *tensors,
        dynamic_dims_sizes=[list(tensor.shape) for tensor in tensors],
        dynamic_dims_strides=[list(tensor.stride()) for tensor in tensors],
    )
    return found.check


@cache
def _has_guards() -> bool:
    """Return True if torch's guards exist and work as expected. They are private to torch."""
    empty = partial(sys.modules["torch"].empty, device="cpu")
    others = empty(2, 3).bool(), empty(2, 4), empty(3, 2).t(), empty(2, 3, device="meta")
    try:
        alike = _guards([empty(2, 3)])
        return alike(empty(2, 3)) and not any(alike(other) for other in others)
    except (AttributeError, TypeError):
        return False


def _dense(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Return the strides of a row-major array whose elements are ``size`` apart."""
    strides = []
    for extent in reversed(shape):
        strides.append(size)
        size *= extent
    return tuple(reversed(strides))


def device_of(array: Any) -> int | None:
    """Return the number of the GPU that an array is on; None where it does not say."""
    if is_tensor(array):
        return int(array.get_device())
    if hasattr(array, "__dlpack_device__"):
        return int(array.__dlpack_device__()[1])
    return None


def check_one_device(ports: Sequence[Port], arrays: Sequence[Any]) -> None:
    """Raise :class:`InputError` for arrays of which some say that they are on different GPUs."""
    known: tuple[str, int] | None = None
    for port, array in zip(ports, arrays, strict=True):
        device = device_of(array)
        if device is None:
            continue
        name, first = known = known or (port.name, device)
        if device != first:
            raise InputError(
                f"{port.name} is on GPU {device}, {name} on GPU {first}; allowed: one GPU for all"
            )


def current_stream(device: int) -> int:
    """Return the handle of torch's current stream on the GPU of this number; needs torch to be
    loaded."""
    return _raw_stream()(device)


def _raw_stream() -> Callable[[int], int]:
    torch = sys.modules["torch"]
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # ten times as fast, if it is there
    return raw or (lambda device: torch.cuda.current_stream(device).cuda_stream)
