"""Programs whose stages read themselves one step before, and loops of NumPy that share no code."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import numpy as np

Inputs = Mapping[str, np.ndarray]

TEXTS = {
    "sums": "h[b, t] = inside(h[b, t - 1], 2) + x[b, t]",
    "vanishing": "h[b, t, d] = 0.5 * inside(h[b, t - 1, d], 0) + x[b, t, d]",
    "growing": "h[b, t, d] = 1.25 * inside(h[b, t - 1, d], 1) + x[b, t, d]",
    "tanh": "h[b, t, d] = tanh(x[b, t, d] + w[d] * inside(h[b, t - 1, d], 0))",
    "matrix": "h[b, t, d] = tanh(x[b, t, d] + sum[e](inside(h[b, t - 1, e], 0) * m[e, d]))",
    "gates": """
        f[b, t, d] = sigmoid(x[b, t, d] + w[d] * inside(h[b, t - 1, d], 0))
        c[b, t, d] = f[b, t, d] * inside(c[b, t - 1, d], 0) + (1 - f[b, t, d]) * y[b, t, d]
        h[b, t, d] = tanh(c[b, t, d])
        -> h, c""",
    "selective": """
        h[b, t, d, e] = (exp(-abs(x[b, t, d]) * r[e]) * inside(h[b, t - 1, d, e], 0)
            + x[b, t, d] * k[b, t, e])
        o[b, t, d] = sum[e](h[b, t, d, e] * q[b, t, e])""",
    "delta": """
        u[b, t, d] = sum[e](inside(S[b, t - 1, d, e], 0) * k[b, t, e])
        S[b, t, d, e] = (inside(S[b, t - 1, d, e], 0)
            + g[b, t] * k[b, t, e] * (v[b, t, d] - u[b, t, d]))
        o[b, t, d] = sum[e](S[b, t, d, e] * q[b, t, e])""",
    "gated delta": """
        R[b, t, d, e] = sigmoid(a[b, t]) * inside(S[b, t - 1, d, e], 0)
        S[b, t, d, e] = (R[b, t, d, e]
            + g[b, t] * k[b, t, e] * (v[b, t, d] - sum[e](R[b, t, d, e] * k[b, t, e])))
        o[b, t, d] = sum[e](S[b, t, d, e] * q[b, t, e])""",
    "largest": "h[b, t, d] = max(x[b, t, d], 0.9 * max[e](inside(h[b, t - 1, e], -inf)))",
    "heat": "h[b, t, d] = x[b, t, d] + 0.3 * inside(h[b, t - 1, d - 1], 1)"
    " + 0.3 * inside(h[b, t - 1, d + 1], -1)",
}
BACKWARDS = " backwards"
"""Ends the names of texts whose steps go down, from the last to the first."""
TURNED = ("growing", "matrix", "gates", "gated delta")
TEXTS |= {name + BACKWARDS: TEXTS[name].replace("t - 1", "t + 1") for name in TURNED}
EXTENTS = {"b": 2, "t": 9, "d": 5, "e": 4}
SQUARE = ("matrix", "matrix backwards", "largest")
"""Programs whose state has one axis under two names."""


def extents_of(name: str, **changes: int) -> dict[str, int]:
    """The extents of the axes of a text."""
    every = {**EXTENTS, **changes}
    if name in SQUARE:
        every["e"] = every["d"]
    return {axis: n for axis, n in every.items() if re.search(rf"\b{axis}\b", TEXTS[name])}


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def expected(name: str, inputs: Inputs) -> np.ndarray:
    """The last output, by loops over steps in float64."""
    if name.endswith(BACKWARDS):
        turned = {key: v[:, ::-1] if key in MOVING else v for key, v in inputs.items()}
        return expected(name.removesuffix(BACKWARDS), turned)[:, ::-1]
    at = {key: np.asarray(value, np.float64) for key, value in inputs.items()}
    walk, start = STEPS[name]
    first = at["x" if "x" in at else "v"]
    steps = []
    state = start(at)
    for t in range(first.shape[1]):
        now = {key: array[:, t] if key in MOVING else array for key, array in at.items()}
        state, found = walk(state, now)
        steps.append(found)
    return np.stack(steps, 1)


MOVING = ("x", "y", "k", "q", "v", "g", "a")
State = np.ndarray | tuple[np.ndarray, np.ndarray]


def _gates(state, at):
    c, h = state
    f = sigmoid(at["x"] + at["w"] * h)
    c = f * c + (1 - f) * at["y"]
    return (c, np.tanh(c)), c


def _selective(state, at):
    decay = np.exp(-np.abs(at["x"])[..., None] * at["r"])
    state = decay * state + at["x"][..., None] * at["k"][:, None]
    return state, np.einsum("bde,be->bd", state, at["q"])


def _delta(state, at):
    if "a" in at:
        state = state * sigmoid(at["a"])[:, None, None]
    error = at["v"] - np.einsum("bde,be->bd", state, at["k"])
    state = state + at["g"][:, None, None] * np.einsum("bd,be->bde", error, at["k"])
    return state, np.einsum("bde,be->bd", state, at["q"])


def _heat(state, at):
    left, right = np.ones_like(at["x"]), -np.ones_like(at["x"])
    if state is not None:
        left[:, 1:], right[:, :-1] = state[:, :-1], state[:, 1:]
    return _both(at["x"] + 0.3 * left + 0.3 * right)


def _both(found):
    return found, found


def _zeros(at):
    return np.zeros_like(at["x"][:, 0])


def _matrices(at):
    return np.zeros((*at["v"][:, 0].shape, at["k"].shape[-1]))


STEPS: Mapping[str, tuple[Callable, Callable]] = {
    "sums": (lambda h, at: _both(h + at["x"]), lambda at: _zeros(at) + 2),
    "vanishing": (lambda h, at: _both(0.5 * h + at["x"]), _zeros),
    "growing": (lambda h, at: _both(1.25 * h + at["x"]), lambda at: _zeros(at) + 1),
    "tanh": (lambda h, at: _both(np.tanh(at["x"] + at["w"] * h)), _zeros),
    "matrix": (lambda h, at: _both(np.tanh(at["x"] + h @ at["m"])), _zeros),
    "gates": (_gates, lambda at: (_zeros(at), _zeros(at))),
    "selective": (
        _selective,
        lambda at: np.zeros((*at["x"][:, 0].shape, at["k"].shape[-1])),
    ),
    "delta": (_delta, _matrices),
    "gated delta": (_delta, _matrices),
    "largest": (
        lambda h, at: _both(np.maximum(at["x"], 0.9 * h.max(-1, keepdims=True))),
        lambda at: _zeros(at) - np.inf,
    ),
    "heat": (_heat, lambda at: None),
}
