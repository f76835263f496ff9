"""The functions, reducers and casts that a program may use, and what each means in float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from spaces.epilogue import functions
from spaces.epilogue.functions import Function

FUNCTIONS = functions.FUNCTIONS | {
    function.name: function
    for function in (
        Function("log", 1, np.log, (4e-7, 4e-7)),
        Function("exp2", 1, np.exp2, (3e-7, 2e-38)),
        Function("floor", 1, np.floor),
    )
}
"""All functions by name; a cast is the function that is called like the dtype."""


@dataclass(frozen=True)
class Reducer:
    """What takes the values along some axes to one value.

    ``combine`` joins two values, and ``identity`` is the result where there are none. An
    ``argument`` reducer gives the place of what ``combine`` would give: the index along the axes,
    the last the fastest, and the lowest of equals.
    """

    name: str
    combine: Callable[..., np.ndarray]
    identity: float
    argument: bool = False


REDUCERS = {
    reducer.name: reducer
    for reducer in (
        Reducer("sum", np.add, 0.0),
        Reducer("prod", np.multiply, 1.0),
        Reducer("max", np.maximum, -np.inf),
        Reducer("min", np.minimum, np.inf),
        Reducer("argmax", np.maximum, -np.inf, argument=True),
        Reducer("argmin", np.minimum, np.inf, argument=True),
    )
}
