"""Codes of values, and values of codes: NumPy arrays and torch tensors alike."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tilewright.spaces.dtypes import dtype
from tilewright.spaces.errors import InputError
from tilewright.spaces.low_bit.values import INTEGERS, values_of


def dtype_name(array: Any) -> str:
    """Return the name of the dtype of an array or a tensor; :class:`InputError` for anything
    else."""
    torch = sys.modules.get("torch")
    if not isinstance(array, np.ndarray) and (torch is None or not torch.is_tensor(array)):
        kind = type(array).__name__
        raise InputError(f"cannot pack a {kind}; allowed: a NumPy array or a torch tensor")
    return str(array.dtype).removeprefix("torch.")


def codes_of(weight: Any, name: str) -> Any:
    """Return the codes of elements of the dtype ``name`` as uint8.

    An array of uint8 has codes, and one of the dtype itself, as ``ml_dtypes`` or torch have it, its
    bit patterns. Any other array has values, each of which must be one of the dtype's. Raises
    :class:`InputError` for a code or a value that is none.
    """
    given, bits = dtype_name(weight), dtype(name).bits
    if given in (name, f"{name}fn", f"{name}fnu"):
        return _bit_patterns(weight, name)
    if given == "uint8":
        if weight.size if isinstance(weight, np.ndarray) else weight.numel():
            largest = int(weight.max())
            if largest >= 2**bits:
                raise InputError(f"the code {largest} of {name}; allowed: 0 to {2**bits - 1}")
        return weight
    if isinstance(weight, np.ndarray):
        return _encoded(weight, name)
    import torch

    found = _encoded(weight.detach().to(torch.float64).cpu().numpy(), name)
    return torch.from_numpy(found).to(weight.device)


def values_of_codes(codes: Any, name: str) -> Any:
    """Return the values of ``codes`` (uint8): whole numbers in 8 bits, others in float32; NumPy's
    of a dtype that ``ml_dtypes`` and this project have alike, in that."""
    element = dtype(name)
    table = values_of(name).astype(element.numpy)
    if isinstance(codes, np.ndarray):
        return table[codes]
    import torch

    if not element.coded and not element.is_integer:
        return codes.view(getattr(torch, name))
    return torch.from_numpy(np.ascontiguousarray(table)).to(codes.device)[codes.long()]


def nearest_values(values: np.ndarray, name: str) -> np.ndarray:
    """Round float64 values to the nearest finite numbers of a coded float, as float32; what is not
    a number becomes the one nearest to 0."""
    table = np.unique(values_of(name)[np.isfinite(values_of(name))])
    middle = (table[1:] + table[:-1]) / 2
    return table[np.searchsorted(middle, np.nan_to_num(values, nan=0.0))].astype(np.float32)


def _bit_patterns(weight: Any, name: str) -> Any:
    if isinstance(weight, np.ndarray):
        return np.ascontiguousarray(weight).view(np.uint8) & (2 ** dtype(name).bits - 1)
    return weight.detach().contiguous().view(sys.modules["torch"].uint8)


def _encoded(values: np.ndarray, name: str) -> np.ndarray:
    """Return the codes of values that are all in the table of a dtype."""
    table = values_of(name)
    if name in INTEGERS:
        found = values.astype(np.int64)
        least, most = dtype(name).limits
        wrong = (found != values) | (found < least) | (found > most)
        codes = found & (len(table) - 1)
    else:
        order = np.argsort(table, kind="stable")
        wanted = np.nan_to_num(values.astype(np.float64), nan=np.nan, posinf=np.inf, neginf=-np.inf)
        place = np.searchsorted(table[order], wanted).clip(max=len(table) - 1)
        codes = order[place]
        if table[len(table) // 2] == 0:
            codes = np.where((wanted == 0) & np.signbit(wanted), len(table) // 2, codes)
        wrong = ~((table[codes] == wanted) | (np.isnan(table[codes]) & np.isnan(wanted)))
    if wrong.any():
        value = values[tuple(np.argwhere(wrong)[0])]
        raise InputError(f"{value} is no value of {name}; allowed: {_allowed(table)}")
    return codes.astype(np.uint8)


def _allowed(table: np.ndarray) -> str:
    finite = np.unique(table[np.isfinite(table)])
    if len(finite) > 16:
        return f"{len(finite)} numbers from {finite[0]:g} to {finite[-1]:g}"
    return ", ".join(f"{value:g}" for value in finite)
