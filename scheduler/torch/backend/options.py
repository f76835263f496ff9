"""The options of ``torch.compile(model, backend="tilewright", options={...})``.

``untuned``
    What becomes of a region that nobody measured: it competes with a predicted kernel
    (``"predict"``, the default), is left to torch (``"skip"``), or is tuned first (``"tune"``).
``seconds``
    How long tuning may take for all regions of a graph; a minute each if nothing is said.
``db``
    The database: a path, a URL, a :class:`~tilewright.Database`, or None for none.
``build``
    ``"wait"``, the default, builds kernels at compile time, side by side. With ``"background"``
    torch computes regions whose kernels are not built, until a process has built them; the same
    compiled model then calls them, or in training the next compilation.
``judge``
    ``"measure"``, the default, lets a kernel replace a region only if it is faster, and keeps
    kernels in a graph only if the whole is not slower. ``"always"`` replaces each region that has
    a kernel, and times nothing.
``stages``
    With ``"measure"`` branches of a graph of inference run side by side where that is faster
    (:mod:`scheduler.torch.stages`). ``"off"`` is the default.

``activations``
    The share of activations, from 0 to 1, that a graph of training keeps for its backward graph.
    Below 1 that one computes again what takes the fewest operations (torch's activation memory
    budget). None, the default, leaves it to torch.

All others are Inductor's, such as ``max_autotune`` or ``freezing``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.settings import Default
from tilewright.spaces.validation.nearest import suggestion

ALLOWED = {
    "untuned": ("predict", "skip", "tune"),
    "build": ("wait", "background"),
    "judge": ("measure", "always"),
    "stages": ("off", "measure"),
}


@dataclass(frozen=True)
class Options:
    """The options of one compilation; ``others`` are Inductor's."""

    untuned: str = "predict"
    seconds: float | None = None
    db: Any = Default.DATABASE
    build: str = "wait"
    judge: str = "measure"
    stages: str = "off"
    activations: float | None = None
    others: Mapping[str, Any] = field(default_factory=dict)


OWN = tuple(option.name for option in fields(Options) if option.name != "others")


def options_of(given: Mapping[str, Any] | None, mode: str | None = None) -> Options:
    """Return the options as ``torch.compile`` passes them; :class:`InputError` for one that neither
    this backend nor Inductor has, and for a value that is not allowed."""
    asked = dict(given or {})
    own = {name: asked.pop(name) for name in OWN if name in asked}
    _check(own)
    others = _of_mode(mode) | {name.replace("-", "_"): value for name, value in asked.items()}
    _check_others(others)
    return Options(**own, others=others)


def _check(own: Mapping[str, Any]) -> None:
    for name, allowed in ALLOWED.items():
        if name in own and own[name] not in allowed:
            raise InputError(f"{name}={shown(own[name])}; allowed: {', '.join(allowed)}")
    seconds, share = own.get("seconds"), own.get("activations")
    if seconds is not None and not (_is_number(seconds) and seconds > 0):
        raise InputError(f"seconds={shown(seconds)}; allowed: a number above 0")
    if share is not None and not (_is_number(share) and 0 <= share <= 1):
        raise InputError(f"activations={shown(share)}; allowed: a number from 0 to 1")
    database = own.get("db")
    if isinstance(database, bytes | int | float):
        raise InputError(f"db={shown(database)}; allowed: a path, a URL, a Database or None")
    if isinstance(database, Path | str) and not str(database):
        raise InputError("db=''; allowed: a path, a URL, a Database or None")


def _is_number(given: object) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool)


def _of_mode(mode: str | None) -> dict[str, Any]:
    """Return Inductor's options of a mode, such as ``max-autotune``."""
    if mode is None:
        return {}
    from torch._inductor import list_mode_options

    known = list_mode_options()
    if mode not in known:
        raise InputError(f"mode={shown(mode)}; allowed: {', '.join(known)}")
    return dict(known[mode])


def _check_others(others: Mapping[str, Any]) -> None:
    from torch._inductor import config

    known = config.get_config_copy()
    for name in others:
        if name not in known:
            near = suggestion(name, (*OWN, *known))
            allowed = ", ".join(OWN)
            raise InputError(
                f"unknown option {shown(name)}; {near}allowed: {allowed}, and Inductor's"
            )
