"""Weights with many zeros, packed once as their other elements: a product is a sum over ranges.

    ptr: int32[n + 1](sorted < e + 1); col: uint16[e](index < 4096)
    y[m, n] = sum[e: ptr[n] <= e < ptr[n + 1]](v[e] * a[m, col[e]])

Columns have 16 bits where these hold them: of float32 an entry then takes 6 bytes instead of 8.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.spaces.errors import InputError
from tilewright.spaces.language import Program, program
from tilewright.spaces.language.inputs import check_end

VALUES = ("float32", "float64", "bfloat16", "float16")
"""The dtypes of elements."""
NARROW = 1 << 16
"""Columns up to which their numbers have 16 bits."""
LARGEST = 1 << 31
"""Elements of a weight, fewer than which pointers of 32 bits can count."""
SUM = re.compile(r"\bx\b(?!\s*[\[(])")
"""The sum, wherever an epilogue reads it."""
_SUM = "sum[e: ptr[n] <= e < ptr[n + 1]](v[e] * a[m, col[e]])"


@dataclass(frozen=True, eq=False)
class SparseWeight:
    """A matrix ``w[n, k]`` as its elements that are not zero, row by row.

    ``values`` are the elements, ``columns`` of uint16, or of int32 for more than 65536 columns,
    says where each is in its row, and ``pointers`` of int32 where each row begins, and the end.
    They are NumPy arrays, or torch tensors if the weight was one. :func:`pack_sparse` makes it.
    """

    shape: tuple[int, int]
    pointers: Any
    columns: Any
    values: Any

    @property
    def entries(self) -> int:
        """The number of elements."""
        return int(self.values.shape[0])

    @property
    def arrays(self) -> Mapping[str, Any]:
        """The operands of :meth:`product` that the weight gives, by their names."""
        return {"ptr": self.pointers, "col": self.columns, "v": self.values}

    def product(self, rows: int, epilogue: str = "x") -> Program:
        """Return the program of ``y[m, n] = sum[k](a[m, k] * w[n, k])`` for so many ``rows`` of
        activations, as ``torch.nn.Linear`` computes it.

        ``epilogue`` is an expression of the sum ``x`` and of operands such as ``bias[n]``. Raises
        :class:`InputError` for one that the language does not have.
        """
        text = (
            "ptr: int32[n + 1](sorted < e + 1)\n"
            f"col: {_dtype(self.columns)}[e](index < {self.shape[1]})\n"
            f"y[m, n] = {re.sub(SUM, _SUM, epilogue)}"
        )
        extents = {"m": rows, "n": self.shape[0], "e": self.entries}
        return program(text, dtype=_dtype(self.values), **extents)


def pack_sparse(weight: Any) -> SparseWeight:
    """Return a weight ``w[n, k]`` packed as its elements that are not zero: a copy.

    It is a NumPy array or a torch tensor, of which zeros are left out, or a sparse matrix of SciPy,
    or a torch tensor in CSR, all of whose entries are kept. Raises :class:`InputError` for any
    other one, and for pointers that fall or do not end at the number of entries, columns out of
    range, and columns of a row that fall.

    Example::

        weight = tilewright.pack_sparse(layer.weight)
        f = tilewright.best(weight.product(rows=16)).holding(**weight.arrays)
        y = f(x)
    """
    torch = sys.modules.get("torch")
    if torch is not None and torch.is_tensor(weight):
        shape, parts = _of_torch(torch, weight.detach())
    elif isinstance(weight, np.ndarray):
        _check_rank(weight.shape)
        shape, chosen = weight.shape, weight != 0
        parts = (_starts(chosen), np.nonzero(chosen)[1], weight[chosen])
    elif hasattr(weight, "tocsr"):
        whole = weight.tocsr()
        if whole is not weight:
            whole.sort_indices()
        shape, parts = whole.shape, (whole.indptr, whole.indices, whole.data)
    else:
        kind = type(weight).__name__
        allowed = "a NumPy array, a torch tensor, or a sparse matrix of SciPy"
        raise InputError(f"cannot pack a {kind}; allowed: {allowed}")
    return _packed(shape, *parts)


def _of_torch(torch: Any, weight: Any) -> tuple[tuple[int, ...], tuple[Any, Any, Any]]:
    _check_rank(weight.shape)
    if weight.layout is torch.strided:
        chosen = weight != 0
        parts = (_starts(chosen.cpu().numpy()), chosen.nonzero()[:, 1], weight[chosen])
    elif weight.layout is torch.sparse_csr:
        parts = (weight.crow_indices(), weight.col_indices(), weight.values())
    else:
        layout = str(weight.layout).removeprefix("torch.")
        raise InputError(f"cannot pack a tensor in {layout}; allowed: a dense one, or sparse_csr")
    return tuple(weight.shape), parts


def _starts(chosen: np.ndarray) -> np.ndarray:
    """Return where each row of ``chosen`` begins among its elements that are true, and the end."""
    return np.concatenate([[0], np.cumsum(np.count_nonzero(chosen, 1))])


def _packed(shape: tuple[int, ...], pointers: Any, columns: Any, values: Any) -> SparseWeight:
    rows, depth = shape
    starts, places = (np.asarray(_on_host(part)).astype(np.int64) for part in (pointers, columns))
    if _dtype(values) not in VALUES:
        raise InputError(f"a weight of {_dtype(values)}; allowed: {', '.join(VALUES)}")
    if not 1 <= places.size < LARGEST:
        allowed = f"1 to {LARGEST - 1}"
        raise InputError(f"a weight of {places.size} elements that are not 0; allowed: {allowed}")
    if values.shape != places.shape:
        allowed = f"{places.shape}, as of its columns"
        raise InputError(f"values have the shape {tuple(values.shape)}; allowed: {allowed}")
    _check_pointers(starts, rows, places.size)
    _check_columns(places, depth, starts)
    narrow = np.uint16 if depth <= NARROW else np.int32
    first, second = starts.astype(np.int32), places.astype(narrow)
    if isinstance(values, np.ndarray):
        copy = values.copy()
        for array in (first, second, copy):
            array.setflags(write=False)
        return SparseWeight((rows, depth), first, second, copy)
    made = sys.modules["torch"].from_numpy
    tables = made(first).to(values.device), made(second).to(values.device)
    return SparseWeight((rows, depth), *tables, values.clone())


def _check_rank(shape: tuple[int, ...]) -> None:
    if len(shape) != 2:
        raise InputError(f"a weight of shape {tuple(shape)}; allowed: (columns, depth)")


def _check_pointers(starts: np.ndarray, rows: int, entries: int) -> None:
    if starts.shape != (rows + 1,):
        raise InputError(f"{starts.size} pointers; allowed: {rows + 1}, of {rows} rows and the end")
    if starts[0]:
        raise InputError(f"pointers begin at {starts[0]}; allowed: 0")
    falls = np.flatnonzero(np.diff(starts) < 0)
    if falls.size:
        raise InputError(
            f"pointers are not sorted: they fall after entry {falls[0]}; "
            "allowed: entries that never fall"
        )
    check_end("pointers", starts, entries)


def _check_columns(places: np.ndarray, depth: int, starts: np.ndarray) -> None:
    low, high = int(places.min()), int(places.max())
    if low < 0 or high >= depth:
        found = low if low < 0 else high
        raise InputError(f"columns hold the index {found}; allowed: 0 to {depth - 1}")
    falls = np.diff(places) < 0
    firsts = starts[(starts > 0) & (starts < places.size)]
    falls[firsts - 1] = False
    if falls.any():
        entry = int(np.flatnonzero(falls)[0])
        row = int(np.searchsorted(starts, entry, "right")) - 1
        raise InputError(
            f"columns of row {row} are not sorted: they fall after entry {entry}; "
            "allowed: columns that never fall, as sort_indices() makes them"
        )


def _on_host(array: Any) -> Any:
    return array if isinstance(array, np.ndarray) else array.cpu().numpy()


def _dtype(array: Any) -> str:
    return str(array.dtype).removeprefix("torch.")
