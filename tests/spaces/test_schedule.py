import json

import pytest

from tilewright.spaces.errors import InputError
from tilewright.spaces.schedule import Schedule

SCHEDULE = Schedule("t", (("bm", 4), ("order", "mn"), ("pack", True)))


def test_equality_is_that_of_what_is_said():
    other = Schedule("t", (("pack", True), ("bm", 4), ("order", "mn")))
    assert other == SCHEDULE
    assert hash(SCHEDULE) == hash(other)
    assert SCHEDULE.key == '{"decisions":{"bm":4,"order":"mn","pack":true},"template":"t"}'
    assert Schedule("u", SCHEDULE.decisions) != SCHEDULE
    assert Schedule("t", (("bm", 4), ("order", "mn"), ("pack", 1))) != SCHEDULE
    assert SCHEDULE["bm"] == 4


def test_json_round_trip():
    assert Schedule.from_json(json.loads(json.dumps(SCHEDULE.to_json()))) == SCHEDULE


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"template": 3, "decisions": {}},
        {"template": "t", "decisions": []},
        {"template": "t", "decisions": {"bm": 1.5}},
        {"template": "t", "decisions": {"bm": None}},
        {"template": "t", "decisions": {"bm": [1]}},
        {"template": "t", "decisions": {"bm": 10**30}},
        {"template": "t", "decisions": {"bm": "\x1b[31m"}},
        {"template": "t", "decisions": {"bm\ud800": 1}},
        {"template": "\x07", "decisions": {}},
        {"template": "t", "decisions": {"bm": "m" * 2000}},
        {"template": "t", "decisions": {f"d{i}": i for i in range(1000)}},
    ],
)
def test_malformed_data_is_refused(data):
    with pytest.raises(InputError):
        Schedule.from_json(data)
