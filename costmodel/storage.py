"""A trained model on disk: the trees as UBJ, and a JSON sidecar that says what they are.

The sidecar of ``model.ubj`` is ``model.ubj.json``. Nothing is ever unpickled: the trees go
through XGBoost's own reader, and only after their SHA-256 matched the sidecar's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from costmodel.features import FEATURE_VERSION
from spaces.errors import InputError

if TYPE_CHECKING:
    import xgboost

FORMAT = "tilewright-cost-model"
FORMAT_VERSION = 1


def sidecar(path: Path) -> Path:
    """Where the description of the model at ``path`` is."""
    return path.with_name(path.name + ".json")


def write_model(
    path: Path,
    booster: xgboost.Booster,
    names: Sequence[str],
    error_scale: float,
    rows: Mapping[tuple[str, str], int],
) -> None:
    """Write trees and sidecar, each replaced as a whole."""
    import xgboost

    trees = bytes(booster.save_raw("ubj"))
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
        "sha256": hashlib.sha256(trees).hexdigest(),
    }
    _replace(path, trees)
    _replace(sidecar(path), (json.dumps(description, indent=1) + "\n").encode())


def read_model(
    path: Path, threads: int
) -> tuple[xgboost.Booster, list[str], float, dict[tuple[str, str], int]]:
    """Trees, feature names, error scale and training rows of the model at ``path``.

    Raises InputError unless trees and sidecar are there, belong together, and are of this
    version of the features.
    """
    if path.exists() and not sidecar(path).exists():
        raise InputError(f"model {path} lacks its sidecar {sidecar(path)}, which says what it is")
    try:
        trees = path.read_bytes()
        description = json.loads(sidecar(path).read_bytes())
        names, scale, rows = _checked(description, hashlib.sha256(trees).hexdigest())
    except OSError as error:
        raise InputError(f"cannot read model {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is not a Tilewright model: {error}") from None
    return _booster(path, trees, len(names), threads), names, scale, rows


def _checked(description: Any, digest: str) -> tuple[list[str], float, dict[tuple[str, str], int]]:
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise ValueError("its sidecar does not say that it is one")
    for name, known in (("format_version", FORMAT_VERSION), ("feature_version", FEATURE_VERSION)):
        if description.get(name) != known:
            raise ValueError(f"{name} is {description.get(name)!r}; this version reads {known}")
    if description.get("sha256") != digest:
        raise ValueError("its SHA-256 differs from the sidecar's")
    names, scale = description["features"], description["error_scale"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("its feature names are no list of strings")
    if not (isinstance(scale, int | float) and 0 < scale < float("inf")):
        raise ValueError("its error scale is no positive number")
    rows = {
        (str(item["workload"]), str(item["target"])): int(item["rows"])
        for item in description["training"]
    }
    return names, float(scale), rows


def _booster(path: Path, trees: bytes, width: int, threads: int) -> xgboost.Booster:
    import xgboost

    try:
        booster = xgboost.Booster({"nthread": threads})
        booster.load_model(bytearray(trees))
        features = booster.num_features()
    except xgboost.core.XGBoostError:
        raise InputError(f"{path} is not a Tilewright model: XGBoost cannot read it") from None
    if features != width:
        raise InputError(
            f"{path} is not a Tilewright model: it has {features} features, its sidecar {width}"
        )
    return booster


def _replace(path: Path, data: bytes) -> None:
    temporary = path.with_name(path.name + ".partial")
    temporary.write_bytes(data)
    temporary.replace(path)
