"""What a search proposes does not depend on how decisions are called: seeds and their order do."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.scheduler.strategies.registry import SEARCHES
from tilewright.spaces.cuda.hopper.template import Hopper
from tilewright.spaces.cuda.rows.template import CudaRows
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.space import Space
from tilewright.spaces.template import Columns, Decision, Rule, Template

HOPPER = cuda_target("sm_90a")
PRODUCT = workload("matmul", m=512, n=384, k=512, dtype="bfloat16", b="col")
ROWS = workload("softmax", r=4096, c=8192, dtype="bfloat16")
CASES = {"hopper": (Hopper, PRODUCT), "rows": (CudaRows, ROWS)}


class Renamed(Template):
    """A template whose decisions have names of another alphabetical order."""

    def __init__(self, template: Template) -> None:
        super().__init__(template.workload, template.target)
        self.template = template
        self.name = template.name
        count = len(template.decisions)
        self.new = {d.name: f"choice_{count - i:02}" for i, d in enumerate(template.decisions)}
        self.decisions = tuple(Decision(self.new[d.name], d.values) for d in template.decisions)
        self.rules = tuple(map(self._rule, template.rules))

    @classmethod
    def refuses(cls, workload, target):
        return None

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        return self.template.quantities(self._old(columns))

    def lower(self, schedule):
        raise NotImplementedError

    def _old(self, columns):
        return {name: columns[new] for name, new in self.new.items() if new in columns}

    def _rule(self, rule: Rule) -> Rule:
        reads = tuple(self.new[name] for name in rule.reads)
        return Rule(
            rule.name, reads, lambda c: rule.holds(self._old(c)), rule.explain, rule.implied
        )


@pytest.fixture(params=CASES)
def spaces(request):
    """A space, and the same under other names."""
    kind, work = CASES[request.param]
    return [
        Space(work, HOPPER, [template])
        for template in (kind(work, HOPPER), Renamed(kind(work, HOPPER)))
    ]


def test_samples_and_neighbours_are_the_same(spaces):
    found = []
    for space in spaces:
        rows = space.sample(np.random.default_rng(3), 200)
        wishes = np.where(np.random.default_rng(4).random(rows.shape) < 0.3, -1, rows)
        found.append((rows, space.complete(wishes, np.random.default_rng(5))))
    (rows, completed), (others, others_completed) = found
    assert len(rows) > 100
    assert np.array_equal(rows, others)
    assert np.array_equal(completed, others_completed)


@pytest.mark.parametrize("name", sorted(SEARCHES.keys() - {"exhaustive", "evolutionary"}))
def test_searches_propose_the_same(spaces, name):
    assert proposals(spaces[0], name) == proposals(spaces[1], name)


def proposals(space: Space, name: str) -> list[list[int]]:
    """Rows that a search asks for in three rounds, its latencies made up from the rows."""
    search, asked = SEARCHES[name](space, 7), []
    for _ in range(3):
        rows = [space.row(each.schedule) for each in search.ask(16)]
        asked += [row.tolist() for row in rows]
        search.tell([(space.schedule(row), 1e-6 * (1 + row.sum() % 17)) for row in rows])
    return asked
