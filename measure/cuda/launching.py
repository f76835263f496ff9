"""Launches through the driver: kernels loaded from cubins, arguments packed once.

Everything here wants the packages of ``tilewright[cuda]``; what touches a device, a driver too.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import cache
from math import prod
from typing import Any, NamedTuple

from tilewright.measure.cuda.device import DeviceError, LoadError
from tilewright.spaces.algebra.integers import round_up
from tilewright.spaces.cuda.tensor_map import TensorMapSpec
from tilewright.spaces.kernel import Call, Launch

PLAIN_SHARED_BYTES = 48 * 1024  # dynamic shared memory that a kernel gets without asking
PLAIN_CLUSTER = 8  # blocks of a cluster that a kernel gets without asking
MAP_BYTES, MAP_ALIGNMENT = 128, 64
_MAP_TYPES = {
    "float64": "FLOAT64",
    "float32": "FLOAT32",
    "tfloat32": "FLOAT32",
    "float16": "FLOAT16",
    "bfloat16": "BFLOAT16",
    "float8_e4m3fn": "UINT8",
    "float8_e5m2": "UINT8",
    "int8": "UINT8",
    "int32": "INT32",
    "int64": "INT64",
    "uint8": "UINT8",
    "uint16": "UINT16",
    "bool": "UINT8",
}
_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int
_PARAMETERS: dict[str, list[Any]] = {
    "cuLaunchKernelEx": [_POINTER] * 4,
    "cuStreamIsCapturing": [_POINTER] * 2,
    "cuTensorMapEncodeTiled": [_POINTER, _NUMBER, ctypes.c_uint32, *[_POINTER] * 5, *[_NUMBER] * 4],
    "cuTensorMapEncodeIm2col": [
        *[_POINTER, _NUMBER, ctypes.c_uint32, *[_POINTER] * 5],
        *[ctypes.c_uint32, ctypes.c_uint32, _POINTER, *[_NUMBER] * 4],
    ],
}


def bindings() -> Any:
    """Return ``cuda.bindings.driver``; ImportError where it is not installed."""
    from cuda.bindings import driver

    return driver


def checked(result: tuple[Any, ...], error: type[DeviceError] = DeviceError) -> Any:
    """Return the value of a driver call's result; ``error`` with the driver's words if it
    failed."""
    status, *values = result
    if status.value != 0:
        raise error(_words(status))
    return values[0] if len(values) == 1 else values


def _words(status: Any) -> str:
    found, text = bindings().cuGetErrorString(status)
    words = text.decode() if found.value == 0 and text else "unknown"
    return f"{status.name}: {words}"


def load_functions(cubin: bytes, call: Call, ordinal: int) -> list[Any]:
    """Return the ``CUfunction`` in ``cubin`` of each launch, allowed the shared memory and the
    cluster that it asks for.

    Valid in every context of the device. :class:`LoadError` if the driver refuses.
    """
    library = checked(bindings().cuLibraryLoadData(cubin, [], [], 0, [], [], 0), LoadError)
    return [_function(library, call.function(launch), launch, ordinal) for launch in call.launches]


def _function(library: Any, name: str, launch: Launch, ordinal: int) -> Any:
    driver = bindings()
    handle = checked(driver.cuLibraryGetKernel(library, name.encode()), LoadError)
    device = checked(driver.cuDeviceGet(ordinal))
    attribute, asked = driver.CUfunction_attribute, {}
    if launch.shared_bytes > PLAIN_SHARED_BYTES:
        shared = attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        asked[shared] = launch.shared_bytes
    if prod(launch.cluster) > PLAIN_CLUSTER:
        asked[attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED] = 1
    for limit, value in asked.items():
        checked(driver.cuKernelSetAttribute(limit, value, handle, device), LoadError)
    return driver.CUfunction(int(handle))


class PreparedLaunch(NamedTuple):
    """A ``CUlaunchConfig``, a ``CUfunction`` and its parameters."""

    configuration: Any
    function: Any
    arguments: Arguments

    @property
    def pointers(self) -> tuple[int, int, int]:
        """The arguments of ``cuLaunchKernelEx``; valid while this object lives."""
        return self.configuration.getPtr(), int(self.function), self.arguments.address


def prepare(
    call: Call,
    functions: Sequence[Any],
    addresses: Mapping[str, int],
    stream: int,
    extent: int | None = None,
) -> list[PreparedLaunch]:
    """Return each launch on the stream of this handle, over the arrays and the workspace at
    ``addresses``, by their names (:data:`spaces.kernel.WORKSPACE`); of another ``extent`` of an
    open axis than the call's, if it is given."""
    extent = call.extent if extent is None else extent
    return [
        PreparedLaunch(
            _configuration(launch, stream), function, Arguments(call, launch, addresses, extent)
        )
        for launch, function in zip(call.launches_at(extent), functions, strict=True)
    ]


def _configuration(launch: Launch, stream: int) -> Any:
    driver = bindings()
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = launch.grid
    config.blockDimX, config.blockDimY, config.blockDimZ = launch.block
    config.sharedMemBytes = launch.shared_bytes
    config.hStream = driver.CUstream(stream)
    kinds, attributes = driver.CUlaunchAttributeID, []
    if launch.cluster != (1, 1, 1):
        attribute = driver.CUlaunchAttribute()
        attribute.id = kinds.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        cluster = attribute.value.clusterDim
        cluster.x, cluster.y, cluster.z = launch.cluster
        attributes.append(attribute)
    if launch.early:
        attribute = driver.CUlaunchAttribute()
        attribute.id = kinds.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        attribute.value.programmaticStreamSerializationAllowed = 1
        attributes.append(attribute)
    if attributes:
        config.attrs = attributes
        config.numAttrs = len(attributes)
    return config


class Arguments:
    """The parameters of one launch in memory of their own; ``address`` is that of the array of
    pointers to them, as ``cuLaunchKernelEx`` takes it."""

    def __init__(
        self, call: Call, launch: Launch, addresses: Mapping[str, int], extent: int
    ) -> None:
        given = {b.name: addresses[b.inside] + b.start for b in call.buffers(launch)}
        self._words = (ctypes.c_uint64 * len(given))(*given.values())
        start = ctypes.addressof(self._words)
        places = [start + 8 * i for i in range(len(given))]
        maps = launch.tensor_maps
        self._maps = ctypes.create_string_buffer(MAP_BYTES * len(maps) + MAP_ALIGNMENT)
        first = round_up(ctypes.addressof(self._maps), MAP_ALIGNMENT)
        for i, spec in enumerate(maps):
            places.append(first + MAP_BYTES * i)
            encode(spec, given[spec.operand], places[-1])
        self._extent = ctypes.c_int32(extent)
        if call.open_axis:
            places.append(ctypes.addressof(self._extent))
        self._places = (ctypes.c_void_p * len(places))(*places)
        self.address = ctypes.addressof(self._places)


def encode(spec: TensorMapSpec, address: int, to: int) -> None:
    """Write the driver's tensor map of ``spec``, over the array at ``address``, to host memory.

    Past ``cuda.bindings``, whose own ``CUtensorMap`` is not aligned as the driver wants it.
    """
    driver = bindings()
    kind = getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{_MAP_TYPES[spec.dtype]}")
    bits = f"{spec.swizzle}B" if spec.swizzle else "NONE"
    swizzle = getattr(driver.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{bits}")
    # the next larger promotion, to 256 bytes, cost a twelfth of an H200's bandwidth
    promotion = driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B
    small, large = ctypes.c_uint32 * spec.rank, ctypes.c_uint64 * spec.rank
    array = (to, kind.value, spec.rank, address, large(*spec.dims), large(*spec.strides))
    if spec.steps:
        corner = ctypes.c_int * spec.rank
        moved = (corner(*spec.lower), corner(*spec.upper), *spec.box, small(1, *spec.steps, 1))
    else:
        moved = (small(*spec.box), small(*[1] * spec.rank))
    status = entry_point(f"cuTensorMapEncode{'Im2col' if spec.steps else 'Tiled'}")(
        *array,
        *moved,
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE.value,
        swizzle.value,
        promotion.value,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE.value,
    )
    checked((driver.CUresult(status),), LoadError)


@cache
def entry_point(name: str) -> Any:
    """Return a function of the driver, past ``cuda.bindings``; it gives the number of a
    ``CUresult``."""
    function = ctypes.CDLL("libcuda.so.1")[name]
    function.restype = _NUMBER
    function.argtypes = _PARAMETERS[name]
    return function
