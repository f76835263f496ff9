"""Libraries that are loaded when they are first used: that takes a second, and memory."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from types import ModuleType
from typing import Any

from tilewright.spaces.errors import InputError


def load_xgboost() -> ModuleType:
    """Return the package; :class:`InputError` where this machine cannot load its library.

    Its own error would say so in twenty lines, of a type that is only known once it is loaded.
    """
    try:
        import xgboost
    except Exception as error:
        reason = " ".join(str(error).split())[-300:]
        raise InputError(
            f"XGBoost, which the cost model needs, cannot be loaded: {reason}"
        ) from None
    return xgboost


def one_thread() -> AbstractContextManager[Any]:
    """Linear algebra on one thread: more would take the cores of whatever is being measured
    meanwhile. Without threadpoolctl, as where a tree runs that was not installed, it has all."""
    known = _linear_algebra()
    if known is None:
        return nullcontext()
    limited: AbstractContextManager[Any] = known.limit(limits=1)
    return limited


@cache
def _linear_algebra() -> Any:
    """The libraries of NumPy and SciPy, once both are loaded; None without threadpoolctl."""
    import scipy.linalg  # noqa: F401

    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController().select(user_api="blas")
