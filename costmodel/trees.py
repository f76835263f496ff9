"""Convert boosted trees to plain data, and check it before XGBoost reads it.

XGBoost trusts the files that it reads: an index out of range or a cycle of nodes ends the process.
So our files hold the trees as lists of numbers. Every number is checked, and XGBoost's own file is
written here, from those.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.costmodel.library import load_xgboost

if TYPE_CHECKING:
    import xgboost

MOST_TREES = 1 << 14
MOST_NODES = 1 << 14  # nodes of one tree, at most
MOST_OUTPUTS = 256
MOST_DEPTH = 64
"""Levels of one tree, at most: what explains a prediction takes time by the square of them."""
LEAF = -1
UNREACHED = 1e-6  # weight of a leaf that no row reaches
LARGEST = float(np.finfo(np.float32).max)
LARGEST_LEAF = 1e30  # that many trees may add up without end
_ROOT_PARENT = 2**31 - 1
_VERSION = [2, 1, 0]
"""The version of XGBoost's own format that we write; this and all later versions read it."""

_LISTS = ("left", "right", "feature", "value", "missing_left")


def plain_trees(booster: xgboost.Booster) -> dict[str, Any]:
    """Return the trees of ``booster`` as JSON values.

    ``base`` is added to each of the ``outputs``; the trees of all outputs take turns. A tree is
    five lists over its nodes, the root first: the nodes to the ``left`` and ``right`` (-1 for a
    leaf), the ``feature`` that is less than ``value`` on the way to the left, whether a missing
    one goes there, and of a leaf the ``value`` that it adds.
    """
    model = json.loads(bytes(booster.save_raw("json")))["learner"]
    parameters = model["learner_model_param"]
    trees = model["gradient_booster"]["model"]["trees"]
    base = json.loads(parameters["base_score"])
    return {
        "outputs": int(parameters["num_target"]),
        "base": base[0] if isinstance(base, list) else base,
        "trees": [
            {
                "left": tree["left_children"],
                "right": tree["right_children"],
                "feature": tree["split_indices"],
                "value": tree["split_conditions"],
                "missing_left": tree["default_left"],
            }
            for tree in trees
        ],
    }


def booster_of(data: object, features: int, threads: int) -> xgboost.Booster:
    """Return a booster of the trees that :func:`plain_trees` described, over so many features.

    ValueError if ``data`` describes none, in words.
    """
    xgboost = load_xgboost()
    outputs, base, trees = _checked(data, features)
    booster = xgboost.Booster({"nthread": threads})
    booster.load_model(bytearray(json.dumps(_learner(trees, outputs, base, features)).encode()))
    return booster


def weighted_by(booster: xgboost.Booster, matrix: np.ndarray, threads: int) -> xgboost.Booster:
    """Return the same trees, each node weighted by how many rows of ``matrix`` reach it.

    Contributions (``pred_contribs``) are then relative to the mean prediction of these rows.
    """
    xgboost = load_xgboost()
    data = xgboost.DMatrix(matrix, nthread=threads)
    leaves = booster.predict(data, pred_leaf=True).reshape(len(matrix), -1).astype(np.int64)
    outputs, base, trees = _checked(plain_trees(booster), matrix.shape[1])
    for tree, reached in zip(trees, leaves.T, strict=True):
        tree["weight"] = _weights(tree, reached)
    weighted = xgboost.Booster({"nthread": threads})
    learner = _learner(trees, outputs, base, matrix.shape[1])
    weighted.load_model(bytearray(json.dumps(learner).encode()))
    return weighted


def _weights(tree: Mapping[str, np.ndarray], reached: np.ndarray) -> np.ndarray:
    """Return the weight of each node of a tree: the rows that reach its leaves. No weight is 0,
    because shares are divided by it."""
    left, right = tree["left"], tree["right"]
    weight = np.bincount(reached, minlength=len(left)) + np.where(left == LEAF, UNREACHED, 0.0)
    for node in np.flatnonzero(left != LEAF)[::-1]:  # children come after their parents
        weight[node] = weight[left[node]] + weight[right[node]]
    return weight


# -- reading ---------------------------------------------------------------------------------


def _checked(data: object, features: int) -> tuple[int, float, list[dict[str, np.ndarray]]]:
    if not isinstance(data, Mapping) or set(data) != {"outputs", "base", "trees"}:
        raise ValueError("its trees are no object of outputs, base and trees")
    outputs, base, trees = data["outputs"], data["base"], data["trees"]
    if type(outputs) is not int or not 1 <= outputs <= MOST_OUTPUTS:
        raise ValueError(f"its trees have no outputs from 1 to {MOST_OUTPUTS}")
    if not isinstance(trees, list) or not 0 < len(trees) <= MOST_TREES or len(trees) % outputs:
        raise ValueError(f"it has no trees for each output, up to {MOST_TREES}")
    (start,) = _numbers([base], "base")
    return outputs, float(start), [_tree(tree, i, features) for i, tree in enumerate(trees)]


def _tree(tree: object, number: int, features: int) -> dict[str, np.ndarray]:
    if not isinstance(tree, Mapping) or set(tree) != set(_LISTS):
        raise ValueError(f"tree {number} has other lists than {', '.join(_LISTS)}")
    checked = {
        name: _numbers(tree[name], f"{name} of tree {number}", whole=name != "value")
        for name in _LISTS
    }
    left, right, feature = checked["left"], checked["right"], checked["feature"]
    size = len(left)
    if any(len(values) != size for values in checked.values()):
        raise ValueError(f"the lists of tree {number} differ in length")
    inner = np.flatnonzero(left != LEAF)
    children = np.concatenate([left[inner], right[inner]])
    if (right[left == LEAF] != LEAF).any() or (children <= np.tile(inner, 2)).any():
        raise ValueError(f"a node of tree {number} does not come after the one above it")
    if not np.array_equal(np.sort(children), np.arange(1, size)):
        raise ValueError(f"a node of tree {number} is not below one other node")
    if _depth(left, right) > MOST_DEPTH:
        raise ValueError(f"tree {number} has more than {MOST_DEPTH} levels")
    if (feature[inner] < 0).any() or (feature[inner] >= features).any():
        raise ValueError(f"a feature of tree {number} is none of {features}")
    if (np.abs(checked["value"][left == LEAF]) > LARGEST_LEAF).any():
        raise ValueError(f"a leaf of tree {number} is beyond {LARGEST_LEAF:g}")
    if (checked["missing_left"] >> 1).any():
        raise ValueError(f"missing_left of tree {number} is neither 0 nor 1")
    return checked


def _depth(left: np.ndarray, right: np.ndarray) -> int:
    """Return the levels of a tree whose nodes come after those above them, ``MOST_DEPTH`` + 1 if
    more."""
    level, depth = np.zeros(1, dtype=np.int64), 0
    while len(level) and depth <= MOST_DEPTH:
        inner = level[left[level] != LEAF]
        level, depth = np.concatenate([left[inner], right[inner]]), depth + 1
    return depth


def _numbers(values: object, name: str, whole: bool = False) -> np.ndarray:
    """Return a list of finite numbers, at least one, as an array; ValueError if it is none."""
    if not isinstance(values, list) or not 0 < len(values) <= MOST_NODES:
        raise ValueError(f"{name} is no list of 1 to {MOST_NODES} numbers")
    if not set(map(type, values)) <= ({int} if whole else {int, float}):
        raise ValueError(f"{name} holds what is no {'whole ' if whole else ''}number")
    most = MOST_NODES if whole else LARGEST
    if not all(-most <= value <= most for value in values):
        raise ValueError(f"{name} holds a number beyond {most:g}")
    return np.array(values, dtype=np.int64 if whole else np.float64)


# -- writing what XGBoost reads -----------------------------------------------------------------


def _learner(
    trees: list[dict[str, np.ndarray]], outputs: int, base: float, features: int
) -> dict[str, Any]:
    model = {
        "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(trees))},
        "iteration_indptr": list(range(0, len(trees) + 1, outputs)),
        "tree_info": [i % outputs for i in range(len(trees))],
        "trees": [_regression_tree(tree, i, features) for i, tree in enumerate(trees)],
    }
    return {
        "version": _VERSION,
        "learner": {
            "attributes": {},
            "feature_names": [],
            "feature_types": [],
            "gradient_booster": {"name": "gbtree", "model": model},
            "learner_model_param": {
                "base_score": repr(base),
                "boost_from_average": "0",
                "num_class": "0",
                "num_feature": str(features),
                "num_target": str(outputs),
            },
            "objective": {
                "name": "reg:squarederror",
                "reg_loss_param": {"scale_pos_weight": "1"},
            },
        },
    }


def _regression_tree(tree: dict[str, np.ndarray], number: int, features: int) -> dict[str, Any]:
    left, right = tree["left"], tree["right"]
    size = len(left)
    parents = np.full(size, _ROOT_PARENT)
    inner = np.flatnonzero(left != LEAF)
    parents[left[inner]] = parents[right[inner]] = inner
    return {
        "id": number,
        "left_children": left.tolist(),
        "right_children": right.tolist(),
        "parents": parents.tolist(),
        "split_indices": np.where(left == LEAF, 0, tree["feature"]).tolist(),
        "split_conditions": tree["value"].tolist(),
        "split_type": [0] * size,
        "default_left": tree["missing_left"].tolist(),
        "base_weights": [0.0] * size,
        "loss_changes": [0.0] * size,
        "sum_hessian": tree.get("weight", np.zeros(size)).tolist(),
        "categories": [],
        "categories_nodes": [],
        "categories_segments": [],
        "categories_sizes": [],
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(features),
            "num_nodes": str(size),
            "size_leaf_vector": "1",
        },
    }
