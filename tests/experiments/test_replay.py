from __future__ import annotations

import gzip
import json
from itertools import product

import numpy as np
import pytest

from costmodel.features import features
from experiments.replay.__main__ import BATCH, STRATEGIES, TRIALS, make_search, replay
from experiments.replay.recording import read_recording
from experiments.replay.simulated import SimulatedDevice
from spaces.errors import InputError


def milliseconds(x, y, z):
    return 1.0 + abs(x - 32) / 16 + (y - 3) ** 2 + 0.1 * z


def cache():
    """A cache file's content: 16 x 10 x 4 configurations, of which a corner is missing."""
    domains = {"x": list(range(16, 272, 16)), "y": list(range(10)), "z": [0, 1, 2, 3], "one": ["a"]}
    entries = {}
    for x, y, z in product(domains["x"], domains["y"], domains["z"]):
        if x * (y + 1) > 1024:
            continue
        time = "RuntimeFailedConfig" if z == 3 and y == 0 else milliseconds(x, y, z)
        key = f"{x},{y},{z},a"
        entries[key] = {"x": x, "y": y, "z": z, "one": "a", "time": time, "times": []}
    return {"tune_params_keys": list(domains), "tune_params": domains, "cache": entries}


@pytest.fixture
def write(tmp_path):
    def write(text, name="toy_GPU.json.gz"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    return write


@pytest.mark.parametrize("cut", [0, 1, 2])
@pytest.mark.parametrize("end", ["", ",", ",\n"])
def test_a_file_without_its_closing_braces_is_read_whole(write, cut, end):
    text = json.dumps(cache())
    recording = read_recording(write(text[: len(text) - cut] + (end if cut else "")))
    assert len(recording.seconds) == len(cache()["cache"])
    assert recording.best == pytest.approx(1.0e-3)
    assert list(recording.domains) == ["x", "y", "z"]


def test_failures_are_kept_as_failures(write):
    recording = read_recording(write(json.dumps(cache()), "toy_GPU.json"))
    failed = {key for key, time in recording.seconds.items() if time is None}
    assert failed == {key for key in recording.seconds if key[1] == 0 and key[2] == 3}
    assert failed


def test_the_t4_format_says_the_same(write):
    content = cache()
    results = []
    for entry in content["cache"].values():
        right = not isinstance(entry["time"], str)
        results.append(
            {
                "configuration": {key: entry[key] for key in ("x", "y", "z", "one")},
                "invalidity": "correct" if right else "runtime",
                "measurements": [{"name": "time", "value": entry["time"], "unit": "ms"}],
            }
        )
    t4 = read_recording(write(json.dumps({"results": results}), "a.json.gz"))
    plain = read_recording(write(json.dumps(content), "b.json.gz"))
    assert t4.seconds == plain.seconds
    assert t4.domains == plain.domains


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cache": {}}', '{"results": [{}]}', "\x00"])
def test_anything_else_is_refused(write, text):
    with pytest.raises(InputError, match="not a recorded space"):
        read_recording(write(text))


@pytest.fixture
def device(write):
    return SimulatedDevice(read_recording(write(json.dumps(cache()))))


def test_the_space_is_what_was_recorded(device):
    schedules = list(device.space.enumerate())
    recorded = {tuple(s.values.values()) for s in schedules}
    assert len(schedules) == len(recorded)
    assert recorded == set(device.recording.seconds)


def test_samples_run_as_recorded(device):
    for row in device.space.sample(np.random.default_rng(0), 50):
        schedule = device.space.schedule(row)
        v = schedule.values
        expected = None if v["y"] == 0 and v["z"] == 3 else milliseconds(**v) / 1e3
        assert device.run(schedule) == pytest.approx(expected)


def test_features_are_the_decisions(device):
    rows = device.space.sample(np.random.default_rng(0), 20)
    columns = features(device.space, rows)
    x = device.space.decision_columns(rows)["recorded.x"]
    np.testing.assert_allclose(columns["recorded.x"], np.log2(1 + x))
    assert np.isnan(columns["roofline.seconds"]).all()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_replays_the_same_for_the_same_seed(device, strategy, monkeypatch):
    monkeypatch.setattr("experiments.replay.__main__.TRIALS", (3 * BATCH,))
    curves = [replay(device, make_search(strategy, device, 1)) for _ in range(2)]
    assert curves[0] == curves[1]
    assert len(curves[0]) == 3 * BATCH
    assert curves[0] == sorted(curves[0], reverse=True)


def test_a_space_smaller_than_the_trials_is_exhausted(write):
    content = cache()
    content["cache"] = {k: e for k, e in content["cache"].items() if e["x"] <= 32}
    device = SimulatedDevice(read_recording(write(json.dumps(content))))
    curve = replay(device, make_search("random", device, 0))
    assert len(curve) == TRIALS[-1]
    assert curve[-1] == device.recording.best


def test_the_search_finds_the_best_of_a_smooth_space(device):
    curve = replay(device, make_search("weighted", device, 0))
    assert len(curve) >= TRIALS[-1]
    assert curve[-1] == device.recording.best
