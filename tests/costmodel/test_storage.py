"""Model files: written as a whole, read back to the bit, and safe to read from anybody."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from tilewright.costmodel.explaining.explanation import explain
from tilewright.costmodel.model import Settings, XGBoostModel
from tilewright.costmodel.storage import read_model
from tilewright.costmodel.testing.toys import TileTemplate, examples, points, product, toy_space
from tilewright.costmodel.trees import LARGEST_LEAF, MOST_DEPTH
from tilewright.spaces.errors import InputError
from tilewright.spaces.space import Space
from tilewright.spaces.template import Decision
from tilewright.spaces.testing.targets import made_up_cpu
from tilewright.spaces.validation.canonical import canonical_json


@pytest.fixture(scope="module")
def space():
    return toy_space(product(), made_up_cpu())


@pytest.fixture(scope="module")
def trained(space):
    model = XGBoostModel(space_for=toy_space)
    model.fit(examples(space, points(space, 100), failing=7))
    return model


@pytest.fixture
def saved(trained, tmp_path):
    path = tmp_path / "model.json"
    trained.save(path)
    return path


def put(path, data):
    """Write ``data`` as a model whose digest is right."""
    rest = {name: value for name, value in data.items() if name != "sha256"}
    digest = hashlib.sha256(canonical_json(rest).encode()).hexdigest()
    path.write_text(json.dumps(rest | {"sha256": digest}))


def test_a_model_of_format_3_knows_decisions_by_their_earlier_names(saved):
    data = json.loads(saved.read_text())
    earlier = ["hopper.residency", "staged_loops.split_2", "map.ahead", "toy.split"]
    names = [*earlier, *data["features"][len(earlier) :]]
    put(saved, data | {"format_version": 3, "features": names})
    today = ["hopper.blocks_per_sm", "staged_loops.splits_2", "map.prefetch", "toy.split"]
    assert XGBoostModel.load(saved).trained.names == [*today, *data["features"][len(earlier) :]]


def test_the_file_describes_the_model(saved, space):
    description = json.loads(saved.read_text())
    assert description["format"] == "tilewright-cost-model"
    assert "roofline.slowdown" in description["features"]
    assert "xgboost" in description["packages"]
    assert description["training"] == [
        {
            "workload": str(space.workload),
            "target": space.target.fingerprint,
            "rows": len(points(space, 100)),
        }
    ]


def test_large_trees_are_read_back_to_the_bit(space, tmp_path):
    model = XGBoostModel(Settings(rounds=20, depth=9, members=3), toy_space)
    model.fit(examples(space, points(space, 1000), failing=7))
    path = tmp_path / "model.json"
    model.save(path)
    rows = points(space, 500, seed=1)
    again = XGBoostModel.load(path, space_for=toy_space)
    for before, after in zip(model.predict(space, rows), again.predict(space, rows), strict=True):
        np.testing.assert_array_equal(before, after)
    assert again.trained_on == model.trained_on


class OwnTemplate(TileTemplate):
    """A user's, who names things as they like and reports more than is asked for."""

    decisions = (*TileTemplate.decisions, Decision("loop-order (outer)", ("mn", "nm")))

    def quantities(self, columns):
        wasted = 1.0 - np.asarray(columns["rows"]) / 16
        return {**super().quantities(columns), "rows wasted, share": wasted}


def own_space(work, machine):
    return Space(work, machine, [OwnTemplate(work, machine)])


def test_a_model_of_a_users_template_is_read_back(tmp_path):
    space = own_space(product(), made_up_cpu())
    model = XGBoostModel(space_for=own_space)
    model.fit(examples(space, points(space, 200)))
    assert {"tile.loop-order (outer)", "reported.rows wasted, share"} <= set(model.trained.names)
    path = tmp_path / "model.json"
    model.save(path)
    rows = points(space, 50, seed=1)
    again = XGBoostModel.load(path, space_for=own_space)
    np.testing.assert_array_equal(model.predict(space, rows), again.predict(space, rows))


def test_a_changed_byte_is_found(saved):
    data = bytearray(saved.read_bytes())
    at = data.index(b'"error_scale":') + len('"error_scale":')
    data[at] = ord("3") if data[at] != ord("3") else ord("4")
    saved.write_bytes(data)
    with pytest.raises(InputError, match="SHA-256"):
        XGBoostModel.load(saved)


NESTED = b"[" * 100_000


@pytest.mark.parametrize("content", [b"", b"\x00\xff", b"{", NESTED, b'{"a":' * 9999, b"1" * 9999])
def test_what_is_no_json_is_refused(saved, content):
    saved.write_bytes(content)
    with pytest.raises(InputError, match=r"model\.json is not a Tilewright model"):
        XGBoostModel.load(saved)


def test_what_is_no_text_is_said_in_words(saved):
    saved.write_bytes(b"SQLite format 3\x00\xf8")
    with pytest.raises(InputError, match=r"is not a Tilewright model: its bytes are no text$"):
        XGBoostModel.load(saved)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "1e999"])
def test_numbers_that_are_none_are_refused(saved, constant):
    text = saved.read_text()
    start = text.index('"base":') + len('"base":')
    saved.write_text(text[:start] + constant + text[text.index(",", start) :])
    with pytest.raises(InputError, match="not a Tilewright model"):
        XGBoostModel.load(saved)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "other"}, "does not say"),
        ({"format_version": 99}, "format_version is 99"),
        ({"feature_version": 0}, "feature_version is 0"),
        ({"features": ["schedule.flops_per_flop"]}, "none of 1"),
        ({"features": "names"}, "no list"),
        ({"features": None}, "no list"),
        ({"features": []}, "no list"),
        ({"features": [1]}, "no feature of this one; train it anew"),
        ({"error_scale": "x"}, "error scale"),
        ({"error_scale": 0}, "error scale"),
        ({"error_scale": True}, "error scale"),
        ({"error_scale": 10**400}, "error scale"),
        ({"training": 3}, "not a Tilewright model"),
        ({"training": [{"workload": "w"}]}, "not a Tilewright model"),
        ({"training": [{"workload": "\x1b[31m", "target": "t", "rows": 1}]}, "trained on"),
        ({"training": [{"workload": "w", "target": "t", "rows": -1}]}, "trained on"),
        ({"boosted": None}, "no object of outputs"),
        ({"boosted": {}}, "no object of outputs"),
        ({"validity": 3}, "no object of outputs"),
        ({"validity": {}}, "no object of outputs"),
        ({"format_version": 2}, "format_version is 2; this version reads 3 and 4; train it anew"),
    ],
)
def test_a_changed_description_is_refused(saved, change, words):
    put(saved, json.loads(saved.read_text()) | change)
    with pytest.raises(InputError, match=words) as error:
        XGBoostModel.load(saved)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 400


@pytest.mark.parametrize(
    "name",
    ["", "f0", "schedule.unheard_of", "target.color", "roofline.", "a.b\n", "x." + "y" * 300],
)
def test_a_feature_that_this_version_does_not_have_is_refused(saved, name):
    data = json.loads(saved.read_text())
    data["features"][0] = name
    put(saved, data)
    with pytest.raises(InputError, match=r"of another version: .* is no feature of this one"):
        XGBoostModel.load(saved)


def test_a_feature_named_twice_is_refused(saved):
    data = json.loads(saved.read_text())
    data["features"][0] = data["features"][1]
    put(saved, data)
    with pytest.raises(InputError, match="twice"):
        XGBoostModel.load(saved)


TREE_DAMAGES = {
    "a child out of range": lambda t: t["left"].__setitem__(0, 9999),
    "a child before the root": lambda t: t["left"].__setitem__(0, -2),
    "a child far out of range": lambda t: t["right"].__setitem__(0, 10**30),
    "a circle": lambda t: t["right"].__setitem__(t["left"][0], 0),
    "its own child": lambda t: t["left"].__setitem__(0, 0),
    "two parents": lambda t: t["right"].__setitem__(0, t["left"][0]),
    "half a leaf": lambda t: t["right"].__setitem__(0, -1),
    "a feature of none": lambda t: t["feature"].__setitem__(0, -1),
    "a feature beyond all": lambda t: t["feature"].__setitem__(0, 10**6),
    "a value that is text": lambda t: t["value"].__setitem__(0, "1"),
    "a value beyond float32": lambda t: t["value"].__setitem__(0, 1e300),
    "a whole number that is none": lambda t: t["left"].__setitem__(0, 1.0),
    "a truth value": lambda t: t["left"].__setitem__(0, True),
    "a default neither left nor right": lambda t: t["missing_left"].__setitem__(0, 2),
    "a list too short": lambda t: t["value"].pop(),
    "an empty list": lambda t: t.__setitem__("value", []),
    "no list": lambda t: t.__setitem__("value", 3),
    "lists in a list": lambda t: t.__setitem__("value", [[1.0]] * len(t["left"])),
    "a list missing": lambda t: t.pop("value"),
    "another list": lambda t: t.__setitem__("categories", [1]),
    "no nodes": lambda t: [values.clear() for values in t.values()],
    "more nodes than we read": lambda t: [v.extend([0] * 20_000) for v in t.values()],
}


@pytest.mark.parametrize("part", ["boosted", "validity"])
@pytest.mark.parametrize("damage", TREE_DAMAGES.values(), ids=TREE_DAMAGES.keys())
def test_a_tree_that_is_none_is_refused_although_the_digest_is_right(saved, damage, part):
    data = json.loads(saved.read_text())
    damage(data[part]["trees"][3])
    put(saved, data)
    with pytest.raises(InputError, match="not a Tilewright model"):
        XGBoostModel.load(saved)


@pytest.mark.parametrize(
    "change",
    [
        {"outputs": 0},
        {"outputs": 10**6},
        {"outputs": 64},
        {"outputs": "5"},
        {"base": "x"},
        {"base": 1e300},
        {"base": None},
        {"trees": []},
        {"trees": None},
        {"trees": [1, 2, 3, 4, 5]},
        {"trees": [{}] * 20_000},
        {"booster": "gblinear"},
    ],
)
def test_an_ensemble_that_is_none_is_refused(saved, change):
    data = json.loads(saved.read_text())
    data["boosted"] = copy.deepcopy(data["boosted"]) | change
    put(saved, data)
    with pytest.raises(InputError, match="not a Tilewright model"):
        XGBoostModel.load(saved)


def test_failures_are_told_by_one_output(saved):
    data = json.loads(saved.read_text())
    data["validity"] = data["boosted"]
    put(saved, data)
    with pytest.raises(InputError, match="trees of failures have 5 outputs; allowed: 1"):
        XGBoostModel.load(saved)


def test_a_model_that_saw_no_failure_is_read_back(space, tmp_path):
    model = XGBoostModel(space_for=toy_space)
    model.fit(examples(space, points(space, 50)))
    model.save(tmp_path / "model.json")
    rows = points(space, 50, seed=1)
    again = XGBoostModel.load(tmp_path / "model.json", space_for=toy_space)
    np.testing.assert_array_equal(model.predict(space, rows), again.predict(space, rows))


def chained(path, inner: int, leaf: float = 0.5) -> None:
    """Put one long chain of so many decisions into the model at ``path``, as every tree."""
    data = json.loads(path.read_text())
    size = 2 * inner + 1
    chain = {
        "left": [*range(1, inner + 1), *[-1] * (inner + 1)],
        "right": [*range(inner + 1, size), *[-1] * (inner + 1)],
        "feature": [0] * size,
        "value": [0.5] * inner + [leaf] * (inner + 1),
        "missing_left": [1] * size,
    }
    data["boosted"]["trees"] = [chain] * len(data["boosted"]["trees"])
    put(path, data)


def test_the_deepest_trees_with_the_largest_leaves_are_explained(saved, space):
    """They are none that we grow, but sound ones."""
    chained(saved, MOST_DEPTH - 1, LARGEST_LEAF)
    model = XGBoostModel.load(saved, space_for=toy_space)
    rows = points(space, 20)
    assert np.isfinite(model.predict(space, rows)).all()
    found, _ = explain(model, [(space, rows)])
    assert np.isfinite(found.contributions).all()


def test_trees_that_would_take_for_ever_to_explain_are_refused(saved):
    chained(saved, 8000)
    with pytest.raises(InputError, match=f"tree 0 has more than {MOST_DEPTH} levels"):
        XGBoostModel.load(saved)


def test_leaves_whose_sum_is_no_number_are_refused(saved):
    chained(saved, 3, 3e38)
    with pytest.raises(InputError, match=r"a leaf of tree 0 is beyond 1e\+30"):
        XGBoostModel.load(saved)


@pytest.mark.parametrize("place", ["", ".", "/dev/full", "/dev/zero", "pipe"])
def test_only_files_are_read_and_written(trained, tmp_path, monkeypatch, place):
    from pathlib import Path

    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    kind = Path(place).stat().st_mode
    with pytest.raises(InputError, match="is no file"):
        trained.save(Path(place))
    with pytest.raises(InputError, match="cannot read model"):
        read_model(Path(place), 1)
    assert Path(place).stat().st_mode == kind
    assert os.listdir() == ["pipe"]


def test_a_write_that_fails_leaves_the_old_model_and_nothing_else(trained, saved, monkeypatch):
    before = saved.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tilewright.spaces.validation.files.os.fsync", full)
    with pytest.raises(InputError, match=r"cannot write model .*No space left on device"):
        trained.save(saved)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_the_rights_of_a_model_are_those_that_the_umask_leaves(saved):
    code = "import os; print(0o666 & ~os.umask(0))"
    wanted = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert saved.stat().st_mode & 0o777 == int(wanted.stdout)
