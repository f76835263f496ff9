"""The operators ``torch.ops.tilewright``, by which compiled graphs call kernels.

A graph holds the key of a workload (:func:`kernels.functions.key_of`), never a schedule: the
process that runs it asks its database for a kernel at the first call, for as many threads as torch
uses then. ``run`` gives one tensor, and has variants that write ``out``; ``run_several`` gives
those of a workload with several outputs, and ``run_new`` is ``run`` for C++ that Inductor writes,
which would call its ``out`` variant wrongly. Operands are the workload's inputs, dense or strided
as its text declares them: a list, or plain tensors (``run.of2(a, b, key)``), as Inductor wants them
where it plans the memory of ``out``. A call with operands that do not fit raises
:class:`RuntimeError`. Gradients are those of torch's own operators
(:mod:`scheduler.torch.operator.gradients`), and autocast casts operands to the dtypes of the
workload. Importing this module defines the operators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from tilewright.scheduler.torch.kernels.building import Wanted
from tilewright.scheduler.torch.kernels.functions import functions, torch_function, workload_of
from tilewright.scheduler.torch.kernels.open_keys import calling_at, is_open, size_of
from tilewright.scheduler.torch.operator import native
from tilewright.scheduler.torch.operator.evaluation import TorchFunction, TorchFunctions
from tilewright.scheduler.torch.operator.gradients import Differentiable
from tilewright.spaces.errors import InputError
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.calling import Calling, calling_of

MOST_PLAIN = 16
"""Operands that are plain tensors, at most; more of them are a list."""

BY_TORCH, IN_PYTHON = "by_torch", "in_python"
"""The operators that C++ calls for what it has no kernel of: torch computes it, or a function in
Python does, such as one of several kernels."""

_torch: Any = torch  # some of its functions have no types
_library = _torch.library.Library("tilewright", "DEF")


def overload(count: int, out: bool = True) -> Any:
    """Return the operator of so many plain operands; of a list where there are none or too many.
    Without ``out`` it is the one that has no variant which writes it."""
    name = f"of{count}" if 1 <= count <= MOST_PLAIN else "default"
    return getattr(torch.ops.tilewright.run if out else torch.ops.tilewright.run_new, name)


def several_outputs() -> Any:
    """Return the operator that gives the outputs of a workload of several."""
    return torch.ops.tilewright.run_several.default


def _install() -> bool:
    """Define the operators; whether the CPU's are those in C++."""
    _define("run_several", "Tensor[] operands", "Tensor[]", _fake_several)
    _define("run", "Tensor[] operands", "Tensor", _fake)
    _define("run_new", "Tensor[] operands", "Tensor", _fake)
    for name in (BY_TORCH, IN_PYTHON):
        _define(name, "Tensor[] operands", "Tensor", _fake)
        _define(f"{name}.out", "Tensor[] operands", "", _fake_out)
        _define(f"{name}_several", "Tensor[] operands", "Tensor[]", _fake_several)
    # A call that names no overload tries all in this order. A wrong number of arguments is refused
    # at once, but to refuse a tensor in the place of a key torch writes its elements as a text.
    for count in range(MOST_PLAIN + 1):
        if count < MOST_PLAIN:
            operands = _operands(count + 1)
            _define(f"run.of{count + 1}", operands, "Tensor", _plain(_fake))
            _define(f"run_new.of{count + 1}", operands, "Tensor", _plain(_fake))
        if count == 1:
            _define("run.out", "Tensor[] operands", "", _fake_out)
        if count:
            _define(f"run.of{count}_out", _operands(count), "", _plain(_fake_out))
    _library.define("differentiable(Tensor[] operands, str key) -> Tensor")
    _library.impl("differentiable", _differentiable, "CompositeImplicitAutograd")
    _library.define("differentiable_several(Tensor[] operands, str key) -> Tensor[]")
    _library.impl("differentiable_several", _differentiable_several, "CompositeImplicitAutograd")
    in_cpp = native.register(_resolve, MOST_PLAIN)
    for device in ("CUDA", "CPU"):
        if device == "CUDA" or not in_cpp:
            _implement(device, _run, _run_out)
            _library.impl("run_several", _run_several, device)
        _library.impl(BY_TORCH, _by_torch, device)
        _library.impl(f"{BY_TORCH}.out", _by_torch_out, device)
        _library.impl(f"{BY_TORCH}_several", _several_by_torch, device)
        _library.impl(IN_PYTHON, _run, device)
        _library.impl(f"{IN_PYTHON}.out", _run_out, device)
        _library.impl(f"{IN_PYTHON}_several", _run_several, device)
        if device == "CUDA" or in_cpp < 2:
            _implement(f"Autograd{device}", _differentiable)
            _library.impl("run_several", _differentiable_several, f"Autograd{device}")
        _implement(f"Autocast{device}", _autocast(device))
    return in_cpp > 0


def _operands(count: int) -> str:
    return ", ".join(f"Tensor x{place}" for place in range(count))


def _implement(
    dispatch: str, run: Callable[..., Any], out: Callable[..., Any] | None = None
) -> None:
    """Let a function of a list of operands compute all operators of one output for a dispatch key;
    ``out`` those that write it."""
    _library.impl("run", run, dispatch)
    _library.impl("run_new", run, dispatch)
    for count in range(1, MOST_PLAIN + 1):
        _library.impl(f"run.of{count}", _plain(run), dispatch)
        _library.impl(f"run_new.of{count}", _plain(run), dispatch)
    if out is not None:
        _library.impl("run.out", out, dispatch)
        for count in range(1, MOST_PLAIN + 1):
            _library.impl(f"run.of{count}_out", _plain(out), dispatch)


def _define(name: str, operands: str, result: str, fake: Callable[..., Any]) -> None:
    """Define an operator, or one that writes ``out`` where it has no ``result``."""
    exact = getattr(torch.Tag, "needs_exact_strides", torch.Tag.needs_fixed_stride_order)
    tags = [exact]
    if not result and hasattr(torch.Tag, "out"):  # by which Inductor finds the variant
        tags.append(torch.Tag.out)
    out = "" if result else ", *, Tensor(a!) out"
    _library.define(f"{name}({operands}, str key{out}) -> {result or 'Tensor(a!)'}", tags=tags)
    _torch.library.register_fake(f"tilewright::{name}", fake, lib=_library)


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of plain operands and a key, by one of a list."""

    def called(*given: Any, **named: Any) -> Any:
        return function(given[:-1], given[-1], **named)

    return called


def put(key: str, kind: str, threads: int, function: Any) -> None:
    """Let calls of a key run this function from now on."""
    functions.put(key, kind, threads, function)
    if kind == "cpu" and IN_CPP:
        _hand_over(key, threads, function)


def put_wanted(wanted: Wanted, function: Any) -> None:
    """Let calls of what was wanted run this function from now on."""
    put(wanted.key, wanted.kind, wanted.threads, function)


def _resolve(key: str, threads: int) -> None:
    """Hand C++ the function of a key that it has not met with so many threads."""
    _hand_over(key, threads, functions.get(key, "cpu", threads))


def _hand_over(key: str, threads: int, function: Any) -> None:
    """Let C++ call a kernel, or the operator that calls something else."""
    if isinstance(function, TorchFunction | TorchFunctions):
        native.put_operator(key, threads, BY_TORCH)
    elif hasattr(function, "parts"):
        native.put(key, threads, function)
    else:
        native.put_operator(key, threads, IN_PYTHON)


# -- in Python -----------------------------------------------------------------------------------


def _function(operands: Sequence[Tensor], key: str) -> Any:
    kind = operands[0].device.type
    return functions.get(key, kind, torch.get_num_threads() if kind == "cpu" else 0)


def _run(operands: Sequence[Tensor], key: str) -> Tensor:
    return _called(operands, key)


def _run_several(operands: Sequence[Tensor], key: str) -> list[Tensor]:
    return list(_called(operands, key))


def _run_out(operands: Sequence[Tensor], key: str, *, out: Tensor) -> Tensor:
    _called(operands, key, out=out)
    return out


def _called(operands: Sequence[Tensor], key: str, out: Tensor | None = None) -> Any:
    try:
        with torch.no_grad():
            return _function(operands, key)(*operands, out=out)
    except InputError as error:
        raise RuntimeError(f"tilewright: {error}") from None


def _by_torch(operands: Sequence[Tensor], key: str) -> Tensor:
    with torch.no_grad():
        made: Tensor = torch_function(key)(*operands)
    return made


def _several_by_torch(operands: Sequence[Tensor], key: str) -> list[Tensor]:
    with torch.no_grad():
        return list(torch_function(key)(*operands))


def _by_torch_out(operands: Sequence[Tensor], key: str, *, out: Tensor) -> Tensor:
    with torch.no_grad():
        torch_function(key)(*operands, out=out)
    return out


# -- with gradients, and cast --------------------------------------------------------------------


def _differentiable(operands: Sequence[Tensor], key: str) -> Tensor:
    run = overload(len(operands))
    if not (torch.is_grad_enabled() and any(each.requires_grad for each in operands)):
        with _torch._C._AutoDispatchBelowAutograd():
            given = (operands, key) if run is overload(0) else (*operands, key)
            found: Tensor = run(*given)
            return found
    made: Tensor = Differentiable.apply(run, run is not overload(0), key, *operands)
    return made


def _differentiable_several(operands: Sequence[Tensor], key: str) -> list[Tensor]:
    return list(Differentiable.apply(several_outputs(), False, key, *operands))


def _autocast(device: str) -> Callable[..., Any]:
    """Return the operator under autocast: operands of floating point become of the workload's
    dtypes."""
    key = getattr(torch._C.DispatchKey, f"Autocast{device}")

    def run(operands: Sequence[Tensor], key_of_workload: str) -> Any:
        arrays = _described(operands, key_of_workload)[0].inputs
        given = [
            operand.to(_dtype(array)) if _may_cast(operand, array) else operand
            for operand, array in zip(operands, arrays, strict=False)
        ]
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(key)):
            return torch.ops.tilewright.run.default(given, key_of_workload)

    return run


def _may_cast(operand: Tensor, array: Array) -> bool:
    return operand.dtype.is_floating_point and _dtype(array).is_floating_point


# -- without values ------------------------------------------------------------------------------


def _fake(operands: Sequence[Tensor], key: str) -> Tensor:
    (made,) = _fake_outputs(operands, key)
    return made


def _fake_several(operands: Sequence[Tensor], key: str) -> list[Tensor]:
    return _fake_outputs(operands, key)


def _fake_out(operands: Sequence[Tensor], key: str, *, out: Tensor) -> Tensor:
    calling, shapes = _described(operands, key)
    _check(out, calling.outputs[0], shapes[len(calling.inputs)])
    return out


def _fake_outputs(operands: Sequence[Tensor], key: str) -> list[Tensor]:
    """Return the tensors with the exact strides of the outputs; sizes of operands may be symbolic,
    and are then bound to those of the workload."""
    calling, shapes = _described(operands, key)
    wanted = len(calling.inputs)
    _torch._check(
        len(operands) == wanted,
        lambda: f"tilewright: {len(operands)} operands are given; allowed: {wanted}",
    )
    for operand, array, shape in zip(operands, calling.inputs, shapes[:wanted], strict=True):
        _check(operand, array, shape)
    return [
        operands[0].new_empty_strided(shape, array.strides, dtype=_dtype(array))
        for array, shape in zip(calling.outputs, shapes[wanted:], strict=True)
    ]


def _described(operands: Sequence[Tensor], key: str) -> tuple[Calling, list[tuple[Any, ...]]]:
    """Return the arrays of a key, and the shape of each: that of an open axis is the operands'."""
    if is_open(key):
        return calling_at(key, size_of(key, operands))
    calling = calling_of(workload_of(key))
    return calling, [array.shape for array in (*calling.inputs, *calling.outputs)]


def _check(given: Tensor, array: Array, shape: Sequence[Any]) -> None:
    """Check the type and shape of an operand; :class:`RuntimeError` if they do not fit."""

    def why() -> str:
        found = f"{given.dtype} of shape {tuple(given.shape)}"
        return f"tilewright: {array.name} is {found}; allowed: {array.dtype} of shape {shape}"

    _torch._check(given.dtype == _dtype(array) and given.ndim == len(shape), why)
    for extent, wanted in zip(given.shape, shape, strict=True):
        _torch._check(extent == wanted, why)


def _dtype(array: Array) -> torch.dtype:
    found: torch.dtype = getattr(torch, array.dtype)
    return found


IN_CPP = _install()
"""True if the operators of the CPU are those in C++."""
