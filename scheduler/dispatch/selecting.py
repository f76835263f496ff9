"""Select the few kernels that serve all sizes with the least expected regret.

This is facility location: kernels are facilities of which at most ``count`` open, sizes are
customers, and a plan (one kernel, or two together) serves a size if its kernels are open. SciPy's
mixed-integer solver finds the best selection.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

LEAST_GAIN = 1e-4
"""Regret that each further kernel must save."""
SECONDS = 60.0
"""Time after which the solver returns the best selection so far."""


def select(
    regrets: np.ndarray, plans: Sequence[Sequence[int]], weights: np.ndarray, count: int
) -> list[int]:
    """Return the numbers of at most ``count`` kernels; none if a plan without kernels serves all
    best.

    ``regrets`` has a row for each plan and a column for each size, and ``plans`` the numbers of the
    kernels that each plan needs; a plan without kernels is always open. ``weights`` says how likely
    each size is. A plan has infinite regret at sizes that it does not serve.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, eye_array, hstack, vstack

    kernels = 1 + max(max(plan, default=-1) for plan in plans)
    rows, columns = np.nonzero(_useful(regrets, plans))
    needs = [(n, kernel) for n, plan in enumerate(rows.tolist()) for kernel in plans[plan]]
    if not needs:
        return []
    sizes, pairs = regrets.shape[1], len(rows)
    variables = kernels + pairs  # is a kernel open; the share of a size that a plan serves
    cost = np.concatenate([np.full(kernels, LEAST_GAIN), regrets[rows, columns] * weights[columns]])
    place = kernels + np.arange(pairs)
    all_served = csr_array((np.ones(pairs), (columns, place)), (sizes, variables))
    pair, kernel = np.array(needs).T
    used = csr_array(
        (np.ones(len(pair)), (columns[pair] * kernels + kernel, place[pair])),
        (sizes * kernels, variables),
    )
    opened = hstack([vstack([eye_array(kernels)] * sizes), csr_array((sizes * kernels, pairs))])
    number = np.where(np.arange(variables) < kernels, 1.0, 0.0)[None]
    solved = milp(
        cost,
        integrality=(np.arange(variables) < kernels).astype(int),
        bounds=Bounds(0, 1),
        constraints=[
            LinearConstraint(all_served, 1, 1),
            LinearConstraint(used - opened, -np.inf, 0),
            LinearConstraint(number, 0, count),
        ],
        options={"time_limit": SECONDS, "mip_rel_gap": 0.0},
    )
    if solved.x is None:
        raise RuntimeError(f"no selection of {count} kernels: {solved.message}")
    return np.flatnonzero(solved.x[:kernels] > 0.5).tolist()


def _useful(regrets: np.ndarray, plans: Sequence[Sequence[int]]) -> np.ndarray:
    """Return True where a plan serves a size better than each plan of fewer of its kernels does."""
    found = np.isfinite(regrets)
    for place, plan in enumerate(plans):
        parts = [n for n, other in enumerate(plans) if set(other) < set(plan)]
        if parts:
            found[place] &= regrets[place] < regrets[parts].min(axis=0)
    return found
