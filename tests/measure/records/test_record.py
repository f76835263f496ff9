"""Measurements as JSON: what no runner writes is refused."""

from __future__ import annotations

import pytest

from tilewright.measure.records.record import measurement_from_json, measurement_to_json
from tilewright.measure.testing.made_up import measured
from tilewright.spaces.errors import InputError


@pytest.mark.parametrize("name", ["samples", "reference_samples"])
def test_times_below_zero_are_refused(name: str) -> None:
    data = measurement_to_json(measured(1, 1e-4))
    assert measurement_from_json(data) == measured(1, 1e-4)
    with pytest.raises(InputError, match=rf"^{name}=.*from 0"):
        measurement_from_json({**data, name: [1e-4, -1.0]})
