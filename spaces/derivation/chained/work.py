"""Count the work of a chain over the columns of a product, for templates of all targets."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.derivation.recurrent.view import cached_recurrence
from tilewright.spaces.derivation.scopes import special
from tilewright.spaces.derivation.work import flops_of_pairs
from tilewright.spaces.language.tree import Expression
from tilewright.spaces.workloads.workload import Workload


def share_inside(workload: Workload, chained: Chained) -> float:
    """Compute the share of all pairs of a row and a key that conditions let count."""
    width = chained.width.extent * len(chained.weighings)
    full = 2.0 * chained.batches * chained.row_count * chained.key.extent
    program = workload.program
    flops = flops_of_pairs(program) if cached_recurrence(program) else workload.flops
    return min(1.0, flops / (full * (chained.depth.extent + width)))


def operations(chained: Chained, bodies: Iterable[Expression], call: int) -> int:
    """Return the operations for each score of what ``bodies`` compute of it, equal ones once; a
    special function is ``call`` of them."""
    seen: set[Expression] = set()
    total = 0
    for body in bodies:
        for node in body.walk():
            if node not in seen and chained.reads_key(node) and node.children:
                seen.add(node)
                total += call if special(node) and not any(map(special, node.children)) else 1
    return total
