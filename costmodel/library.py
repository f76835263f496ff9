"""XGBoost, which is loaded when it is first used: that takes a second, and memory."""

from __future__ import annotations

from types import ModuleType

from spaces.errors import InputError


def load_xgboost() -> ModuleType:
    """The package; :class:`InputError` where this machine cannot load its library.

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
