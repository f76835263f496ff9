"""All rules of the rows template."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.spaces.cuda.rows.rules.holding import hold_rules, size_rules
from tilewright.spaces.cuda.rows.rules.staying import staying_rules
from tilewright.spaces.cuda.rows.rules.summing import sum_rules
from tilewright.spaces.cuda.rows.rules.threads import block_rules, cluster_rules, thread_rules
from tilewright.spaces.cuda.rows.sizes import RowSizes
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.template import Decision, Rule


def row_rules(sizes: RowSizes, target: CudaTarget, decisions: Sequence[Decision]) -> list[Rule]:
    """Return all rules of the template, in the order of its decisions."""
    return [
        *thread_rules(sizes, target, decisions),
        *block_rules(sizes, target),
        *cluster_rules(sizes),
        *hold_rules(sizes),
        *size_rules(sizes, target, decisions),
        *staying_rules(sizes, target),
        *(sum_rules(sizes, target) if sizes.rows.summed else []),
    ]
