"""Results on their way to whoever asks for them."""

from __future__ import annotations

import pytest

from tests.measure.cluster.driver.made_up_work import candidates, job
from tilewright.measure.outcomes import Outcomes
from tilewright.measure.records.measurement import Measurement, Result, Status


def test_what_was_measured_before_a_fault_is_given_before_it_is_raised():
    outcomes, jobs = Outcomes(), [job("one"), job("two")]
    for own in jobs:
        outcomes.expect(own, 2)
    found = [
        Result(candidate, Measurement(candidate.schedule, Status.OK, 1.0, (1.0,)))
        for own in jobs
        for candidate in candidates(own, 1)
    ]
    outcomes.add(found)
    outcomes.fail(RuntimeError("the cluster is lost"))
    assert outcomes.take(0.0, jobs[0]) == found[:1]
    with pytest.raises(RuntimeError, match="is lost"):
        outcomes.take(None, jobs[0])
    assert outcomes.take(0.0) == found[1:]
    with pytest.raises(RuntimeError, match="is lost"):
        outcomes.take(0.0)
