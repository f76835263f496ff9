"""Store a trained model on disk as one JSON object.

A file from anywhere is safe to load: nothing is unpickled, every number is checked (see
``costmodel.trees``), and only checked data is handed to XGBoost. Its ``sha256``, of the canonical
JSON of the rest, finds damage. It does not protect from people.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tilewright.costmodel.features import FEATURE_VERSION, is_feature
from tilewright.costmodel.library import load_xgboost
from tilewright.costmodel.trees import booster_of, plain_trees
from tilewright.spaces.earlier_names import present_feature
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.validation.canonical import canonical_json
from tilewright.spaces.validation.files import check_place, write_whole
from tilewright.spaces.validation.text import is_plain

if TYPE_CHECKING:
    import xgboost

FORMAT = "tilewright-cost-model"
FORMAT_VERSION = 4
READABLE = (3, FORMAT_VERSION)
"""In 3, features of decisions had earlier names."""
MOST_BYTES = 256 << 20
MOST_NAMES = 4096

Contents = tuple[
    "xgboost.Booster",
    list[str],
    float,
    "xgboost.Booster | None",
    dict[tuple[str, str], int],
]
"""Trees, feature names, error scale, trees that tell failures if there were any, and training rows
by workload and fingerprint."""


class _OtherVersionError(ValueError):
    """A model of ours that another version of this program wrote."""


def write_model(
    path: Path,
    booster: xgboost.Booster,
    validity: xgboost.Booster | None,
    names: Sequence[str],
    error_scale: float,
    rows: Mapping[tuple[str, str], int],
) -> None:
    """Write a model; what was there before is replaced as a whole.

    :class:`InputError` where that is not possible.
    """
    xgboost = load_xgboost()
    check_place(path, "a model")
    description = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "feature_version": FEATURE_VERSION,
        "features": list(names),
        "error_scale": error_scale,
        "packages": {"numpy": np.__version__, "xgboost": xgboost.__version__},
        "training": [
            {"workload": workload, "target": target, "rows": count}
            for (workload, target), count in rows.items()
        ],
        "boosted": plain_trees(booster),
        "validity": None if validity is None else plain_trees(validity),
    }
    content = canonical_json(description | {"sha256": _digest(description)}) + "\n"
    try:
        write_whole(path, content.encode())
    except OSError as error:
        raise InputError(f"cannot write model {path}: {error.strerror}") from None


def read_model(path: Path, threads: int) -> Contents:
    """Return the model at ``path``; InputError unless it is whole, sound, and of this version."""
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"cannot read model {str(path)!r}: it is no file")
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{path} is not a Tilewright model: larger than {MOST_BYTES} bytes")
        data = json.loads(path.read_bytes(), parse_constant=_refuse)
        return _contents(data, threads)
    except OSError as error:
        raise InputError(f"cannot read model {path}: {error.strerror}") from None
    except InputError:
        raise
    except _OtherVersionError as error:
        raise InputError(f"model {path} is of another version: {error}; train it anew") from None
    except UnicodeError:
        raise InputError(f"{path} is not a Tilewright model: its bytes are no text") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path} is not a Tilewright model: {error}") from None


def _contents(data: Any, threads: int) -> Contents:
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ValueError("it does not say that it is one")
    for name, known in (("format_version", READABLE), ("feature_version", (FEATURE_VERSION,))):
        if data.get(name) not in known:
            words = " and ".join(map(str, known))
            raise _OtherVersionError(
                f"{name} is {shown(data.get(name))}; this version reads {words}"
            )
    if data.pop("sha256", None) != _digest(data):
        raise ValueError("its SHA-256 is another: the file is damaged")
    names, scale = _names(data["features"]), data["error_scale"]
    if data["format_version"] != FORMAT_VERSION:
        names = [present_feature(name) for name in names]
    if type(scale) not in (int, float) or not 0 < scale <= 1e6:
        raise ValueError("its error scale is no number above 0 and up to 10^6")
    booster = booster_of(data["boosted"], len(names), threads)
    runs = data["validity"]
    validity = None if runs is None else booster_of(runs, len(names), threads)
    if validity is not None and runs["outputs"] != 1:
        raise ValueError(f"its trees of failures have {runs['outputs']} outputs; allowed: 1")
    return booster, names, float(scale), validity, dict(map(_training, data["training"]))


def _names(names: Any) -> list[str]:
    if not isinstance(names, list) or not 0 < len(names) <= MOST_NAMES:
        raise ValueError(f"its features are no list of 1 to {MOST_NAMES} names")
    for name in names:
        if not isinstance(name, str) or not is_feature(name):
            raise _OtherVersionError(f"{shown(name)} is no feature of this one")
    if len(set(names)) < len(names):
        raise ValueError("it names a feature twice")
    return names


def _training(item: Any) -> tuple[tuple[str, str], int]:
    workload, target, rows = item["workload"], item["target"], item["rows"]
    if not (is_plain(workload, 10_000) and is_plain(target) and type(rows) is int and rows >= 0):
        raise ValueError("what it was trained on is no list of workloads, targets and rows")
    return (workload, target), rows


def _digest(description: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical_json(description).encode()).hexdigest()


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON value")
