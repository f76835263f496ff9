"""Numbers that formulas are written over once: arrays of NumPy, or variables of generated code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from tilewright.spaces.dtypes import dtype
from tilewright.spaces.language.evaluation import OPERATIONS
from tilewright.spaces.language.functions import FUNCTIONS


class Numbers(Protocol):
    """The numbers that the rules compute with: values in float64 with Python's ``+ - * /``,
    comparisons, ``&`` and ``|``; Python's own numbers may be mixed in.
    """

    def constant(self, value: float) -> Any:
        """Return a value of the same in every place."""
        ...

    def is_integer(self, value: Any) -> bool:
        """Tell whether values are integers, not float64 or conditions."""
        ...

    def wide(self, value: Any) -> Any:
        """Return the integers, or conditions as 0 and 1, in float64."""
        ...

    def operation(self, operator: str, a: Any, b: Any) -> Any:
        """Return one of ``+ - * / // %`` or of comparisons; of integers by ``/`` in float64, by
        ``//`` rounded down."""
        ...

    def least(self, a: Any, b: Any) -> Any:
        """Return the lesser of two; NaN where one of them is."""
        ...

    def greatest(self, a: Any, b: Any) -> Any:
        """Return the greater of two; NaN where one of them is."""
        ...

    def select(self, condition: Any, a: Any, b: Any) -> Any:
        """Return ``a`` where the condition holds, elsewhere ``b``."""
        ...

    def call(self, function: str, arguments: Sequence[Any]) -> Any:
        """Return a function of :mod:`spaces.language.functions`, or ``floor`` or ``ceil``."""
        ...

    def cast(self, value: Any, name: str) -> Any:
        """Round to the nearest value of a floating-point dtype; float8 saturates."""
        ...


class Arrays:
    """Numbers that are float64 arrays of NumPy, which broadcast."""

    def constant(self, value: float) -> Any:
        """Return a scalar."""
        return np.float64(value)

    def is_integer(self, value: Any) -> bool:
        """Tell by the array's dtype."""
        return np.asarray(value).dtype.kind == "i"

    def wide(self, value: Any) -> Any:
        """Convert by ``astype``."""
        return np.asarray(value).astype(np.float64, copy=False)

    def operation(self, operator: str, a: Any, b: Any) -> Any:
        """Return Python's, element by element."""
        return OPERATIONS[operator](np.asarray(a), b)

    def least(self, a: Any, b: Any) -> Any:
        """Return ``numpy.minimum``."""
        return np.minimum(a, b)

    def greatest(self, a: Any, b: Any) -> Any:
        """Return ``numpy.maximum``."""
        return np.maximum(a, b)

    def select(self, condition: Any, a: Any, b: Any) -> Any:
        """Return ``numpy.where``, without its work if the condition holds nowhere."""
        if np.any(condition):
            return np.where(condition, a, b)
        found, shape = np.asarray(b), np.broadcast(condition, a, b).shape
        return found if found.shape == shape else np.broadcast_to(found, shape)

    def call(self, function: str, arguments: Sequence[Any]) -> Any:
        """Return the function's reference, or what is as good where code may be off."""
        whole = {"floor": np.floor, "ceil": np.ceil}
        if function in whole:
            return whole[function](*arguments)
        known = FUNCTIONS[function]
        return (known.quick or known.reference)(*arguments)

    def cast(self, value: Any, name: str) -> Any:
        """Convert by way of float32, as kernels do, unless the dtype is float64; in one of the
        two."""
        if name == "float64":
            return value
        narrow = np.asarray(value).astype(np.float32)
        if name.startswith("float8"):
            import ml_dtypes

            largest = np.float32(ml_dtypes.finfo(dtype(name).numpy).max)  # type: ignore[no-untyped-call]
            narrow = np.clip(narrow, -largest, largest)
        return narrow.astype(dtype(name).numpy, copy=False).astype(np.float32, copy=False)
