"""Files of recorded spaces: what they say, and what is refused."""

from __future__ import annotations

import gzip
import json
import os
from itertools import permutations

import numpy as np
import pytest

from tests.scheduler.replay.toys import CACHE, T4
from tilewright.costmodel.features import features
from tilewright.scheduler.replay.formats.foreign import by_size
from tilewright.scheduler.replay.formats.reading import read_recordings
from tilewright.spaces.errors import InputError


def read(path):
    [recording] = read_recordings(path, pytest.fail)
    return recording


@pytest.fixture
def write(tmp_path):
    def write(content, name="toy.json"):
        path = tmp_path / name
        text = content if isinstance(content, str) else json.dumps(content)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    return write


def cache(**parameters):
    """A cache file's content, a configuration for each entry of the parameters' lists."""
    entries = [
        dict(zip(parameters, v, strict=True)) for v in zip(*parameters.values(), strict=True)
    ]
    return {
        "tune_params_keys": list(parameters),
        "cache": {str(i): {**entry, "time": 1.0 + i} for i, entry in enumerate(entries)},
    }


def test_a_cache_file_without_its_closing_braces_is_read_whole():
    recording = read(CACHE)
    assert recording.name == "toy_GPU"
    assert len(recording.outcomes) == 8
    assert recording.failures == 1
    assert recording.optimum == pytest.approx(2e-3)
    assert recording.space.target.summary == "Toy GPU"
    [template] = recording.space.templates.values()
    assert {d.name: d.values for d in template.decisions} == {
        "block": (1, 2, 4),
        "unroll": (0, 1, 2),
    }


def test_a_failure_is_kept_as_one_with_what_it_cost():
    recording = read(CACHE)
    [failed] = [s for s, outcome in recording.outcomes.items() if outcome.seconds is None]
    assert failed.values == {"block": 4, "unroll": 0}
    assert recording.outcomes[failed].cost == pytest.approx(0.3005)


def test_both_formats_say_the_same():
    ours, theirs = read(CACHE).outcomes, read(T4).outcomes
    assert {s: o.seconds for s, o in ours.items()} == {s: o.seconds for s, o in theirs.items()}
    ran = [s for s, outcome in ours.items() if outcome.seconds is not None]
    assert [ours[s].cost for s in ran] == pytest.approx([theirs[s].cost for s in ran])


@pytest.mark.parametrize("end", ["}}", "}", "", "},\n", ",", ",\n"])
def test_compressed_or_not_and_however_it_ends(write, end):
    text = CACHE.read_text().rstrip().rstrip(",") + end
    for name in ("toy_GPU.json.gz", "toy_GPU.json"):
        assert read(write(text, name)).outcomes == read(CACHE).outcomes


def test_a_configuration_that_was_measured_again_keeps_its_lowest_time(write):
    content = cache(x=[1, 1, 1, 2])
    content["cache"]["2"]["time"] = "RuntimeFailedConfig"
    assert sorted(read(write(content)).seconds) == [1e-3, 4e-3]


def test_the_space_is_what_was_recorded():
    recording = read(CACHE)
    assert set(recording.space.enumerate()) == set(recording.outcomes)


def test_the_space_draws_evenly():
    space = read(CACHE).space
    drawn = space.sample(np.random.default_rng(0), 8000)
    _, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(counts) == 8
    assert (abs(counts - 1000) < 150).all()


def test_parameters_of_any_type_are_decisions(write):
    recording = read(
        write(
            cache(
                flag=[True, False, True],
                word=["b", "a", "a"],
                real=[0.5, 10.0, 2.25],
                mixed=["auto", 8, 16],
                huge=[2**70, 1, 2],
            )
        )
    )
    [template] = recording.space.templates.values()
    assert {d.name: d.values for d in template.decisions} == {
        "flag": (False, True),
        "word": ("a", "b"),
        "real": ("0.5", "2.25", "10.0"),
        "mixed": ("8", "16", "auto"),
        "huge": ("1", "2", str(2**70)),
    }
    assert set(recording.space.enumerate()) == set(recording.outcomes)


def test_values_have_one_order_in_whatever_order_they_come():
    """A set of texts has another one in each process."""
    values = ["1", "1.0", "nan", "-2", "word", "inf"]
    orders = {tuple(sorted(each, key=by_size)) for each in permutations(values)}
    assert orders == {("-2", "1", "1.0", "inf", "nan", "word")}


def test_a_space_of_many_parameters(write):
    """Their combinations are more than any whole number of a machine."""
    generator = np.random.default_rng(0)
    points = generator.integers(0, 2, (65, 20)).tolist()
    recording = read(write(cache(**{f"p{i}": column for i, column in enumerate(points)})))
    assert set(recording.space.enumerate()) == set(recording.outcomes)


def test_a_space_of_one_configuration(write):
    recording = read(write(cache(x=[1])))
    assert list(recording.space.enumerate()) == list(recording.outcomes)


def test_features_follow_from_the_parameters():
    space = read(CACHE).space
    rows = np.concatenate(list(space.blocks()))
    columns = features(space, rows)
    block = space.decision_columns(rows)["recorded.block"]
    np.testing.assert_allclose(columns["recorded.block"], np.log2(1 + block))
    assert np.isnan(columns["roofline.seconds"]).all()


def test_pairs_of_sizes_are_features(write):
    space = read(write(cache(x=[16, 32, 64, 128], y=[8, 4, 2, 1], flag=[0, 1, 0, 1]))).space
    rows = np.concatenate(list(space.blocks()))
    quantities = space.quantities(rows)
    x, y = (space.decision_columns(rows)[f"recorded.{name}"] for name in "xy")
    np.testing.assert_allclose(quantities["product.x.y"], np.log2(x * y))
    np.testing.assert_allclose(quantities["ratio.x.y"], np.log2(x / y))
    assert not any("flag" in name for name in quantities)


ENTRY = {"x": 1, "time": 1.0}
BAD = {
    "": "is no recorded space",
    "\x00": "is no recorded space",
    "[]": "is no recorded space: no JSON object",
    "{": "is no recorded space",
    "{}": "allowed: a cache file of Kernel Tuner, a T4 results file, or an export of tilewright",
    '{"cache": {}}': "allowed: a cache file",
    '{"cache": {}, "tune_params_keys": []}': "holds no configuration",
    '{"cache": {"1": {"time": 1}}, "tune_params_keys": ["x"]}': "an entry lacks 'x'",
    '{"cache": {"1": {"x": 1}}, "tune_params_keys": ["x"]}': "an entry lacks 'time'",
    '{"cache": [], "tune_params_keys": []}': "is no recorded space",
    '{"cache": {"1": {"x": 1, "time": "Failed"}}, "tune_params_keys": ["x"]}': "none of its 1",
    '{"cache": {"1": {"x": 1, "time": 1e20}}, "tune_params_keys": ["x"]}': "none of its 1",
    '{"cache": {"1": {"x": 1, "time": 5e-324}}, "tune_params_keys": ["x"]}': "none of its 1",
    '{"cache": {"1": {"x": 1, "time": NaN}}, "tune_params_keys": ["x"]}': "none of its 1",
    '{"results": [{}]}': "an entry lacks 'configuration'",
    '{"results": 1}': "is no recorded space",
    "[" * 100_000: "is no recorded space",
}


@pytest.mark.parametrize("text", BAD)
def test_anything_else_is_refused(write, text):
    with pytest.raises(InputError, match=BAD[text].replace("'", ".")) as refused:
        read_recordings(write(text), pytest.fail)
    assert "toy.json" in str(refused.value)


def test_nobody_waits_for_a_pipe_that_none_writes_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="no regular file; allowed: a cache file"):
        read_recordings(tmp_path / "pipe", pytest.fail)


def test_files_that_cannot_be_read_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*missing"):
        read_recordings(tmp_path / "missing.json", pytest.fail)
    with pytest.raises(InputError, match="cannot read"):
        read_recordings(tmp_path, pytest.fail)
    (tmp_path / "tuning.db").write_bytes(b"SQLite format 3\x00\xf8")
    with pytest.raises(InputError, match="its bytes are no text; allowed: a cache file"):
        read_recordings(tmp_path / "tuning.db", pytest.fail)
    (tmp_path / "torn.gz").write_bytes(gzip.compress(CACHE.read_bytes())[:100])
    with pytest.raises(InputError, match="is no whole file of gzip"):
        read_recordings(tmp_path / "torn.gz", pytest.fail)


def test_what_sizes_have_beside_powers_of_two_is_a_feature(write):
    space = read(write(cache(x=[16, 48, 96, 80], y=[3, 1, 7, 6], z=[1, 2, 4, 8]))).space
    rows = np.concatenate(list(space.blocks()))
    quantities = space.quantities(rows)
    odd = {16: 1, 48: 3, 96: 3, 80: 5, 3: 3, 1: 1, 7: 7, 6: 3}
    x, y = (
        [odd[size] for size in space.decision_columns(rows)[f"recorded.{name}"]] for name in "xy"
    )
    np.testing.assert_allclose(quantities["odd.x"], np.log2(x))
    np.testing.assert_allclose(quantities["odd.x.y"], np.log2(np.multiply(x, y)))
    assert not any(name.startswith("odd") and "z" in name for name in quantities)


UNITS = {
    ("seconds", "s"): 1.0,
    ("Milliseconds", "ms"): 1e-3,
    ("miliseconds", None): 1e-3,
    ("microseconds", "us"): 1e-6,
    ("microseconds", "µs"): 1e-6,
    ("Microseconds", ""): 1e-6,
    ("ns", "nanoseconds"): 1e-9,
    (None, "us"): 1e-3,
    (None, None): 1e-3,
}


@pytest.mark.parametrize("units", UNITS)
def test_times_are_in_the_units_that_a_file_names(write, units):
    """Those of whole runs are in that of the metadata, where each measurement may have its own."""
    everywhere, own = units
    content = json.loads(T4.read_text())
    content["metadata"] = {} if everywhere is None else {"timeunit": everywhere}
    for result in content["results"]:
        [measured] = result["measurements"]
        measured.pop("unit") if own is None else measured.update(unit=own)
    recording = read(write(content))
    unit = UNITS[units]
    assert recording.optimum == pytest.approx(2.0 * (1e-6 if own == "us" else unit))
    costs = [o.cost for s, o in recording.outcomes.items() if s.values["block"] == 2]
    assert costs == pytest.approx([220 * unit] * 3)


@pytest.mark.parametrize("place", ["timeunit", "unit"])
@pytest.mark.parametrize("unit", ["fortnights", "cycles", 3, ["ms"]])
def test_what_is_no_unit_of_time_is_refused(write, place, unit):
    content = json.loads(T4.read_text())
    if place == "timeunit":
        content["metadata"] = {"timeunit": unit}
    else:
        content["results"][0]["measurements"][0]["unit"] = unit
    with pytest.raises(InputError, match=f"{place}=.* is no unit of time; allowed: seconds,"):
        read_recordings(write(content), pytest.fail)


def test_a_file_that_unpacks_to_far_more_than_its_size_is_refused(tmp_path):
    path = tmp_path / "bomb.json.gz"
    with gzip.open(path, "wb") as file:
        file.write(b'{"cache":')
        for _ in range(80):
            file.write(b" " * (1 << 20))
    with pytest.raises(InputError, match="unpacks to more than 256 times its size"):
        read_recordings(path, pytest.fail)


def test_a_space_of_too_many_parameters_is_refused(write):
    points = np.random.default_rng(0).integers(0, 4, (2000, 30)).tolist()
    content = cache(**{f"p{i}": column for i, column in enumerate(points)})
    with pytest.raises(InputError, match="2000 parameters that vary; allowed: up to 128"):
        read_recordings(write(content), pytest.fail)
