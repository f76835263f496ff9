from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from tilewright.costmodel.features import (
    LONGEST_NAME,
    feature_matrix,
    features,
    is_feature,
    target_features,
    workload_features,
)
from tilewright.costmodel.testing.toys import TileTemplate, points, product, toy_space
from tilewright.spaces import backends
from tilewright.spaces.operators import workload
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target
from tilewright.spaces.testing.targets import made_up_cpu


def test_every_feature_is_a_number_or_a_column():
    space = toy_space(product(epilogue="gelu(x + bias[n])"), made_up_cpu())
    rows = points(space, 40)
    for name, values in features(space, rows).items():
        assert np.shape(values) in ((), (len(rows),)), name
        assert np.isfinite(values).all(), name


def test_names_do_not_depend_on_the_population():
    space = toy_space(product(), made_up_cpu())
    assert list(features(space, points(space, 3))) == list(features(space, points(space, 99)))


def test_features_say_what_they_are():
    space = toy_space(
        product(m=384, n=512, k=256, b="col", epilogue="gelu(x + bias[n])"), made_up_cpu()
    )
    row = points(space, 1)
    found = {k: float(np.ravel(v)[0]) for k, v in features(space, row).items()}
    schedule = space.schedule(row[0])
    assert found["workload.k"] == 8.0
    assert found["workload.free"] == np.log2(384 * 512)
    assert found["workload.epilogue_functions"] == 1.0
    assert found["workload.A.along_reduction"] == 1.0
    assert found["workload.B.along_reduction"] == 1.0
    assert found["target.l2_bytes"] == np.log2(1 + 2**20)
    assert found["target.threads"] == 1.0
    assert found["tile.block"] == np.log2(1 + schedule["block"])
    assert found["tile.order"] in (0.0, 1.0)
    assert found["template.tile"] == 1.0
    assert 1.0 <= 2 ** found["schedule.flops_per_flop"] < 2.5


def test_traffic_is_per_unit_of_work():
    small, large = (
        feature_matrix(space, points(space, 1), ["schedule.middle_bytes_per_flop"])
        for space in (toy_space(product(k=k), made_up_cpu()) for k in (512, 4096))
    )
    np.testing.assert_allclose(small, large)


def test_what_does_no_operations_is_measured_by_what_it_moves():
    copies = (workload("y[i, j] = x[i, j]", i=rows, j=64) for rows in (64, 256))
    small, large = map(workload_features, copies)
    assert small["workload.intensity"] == large["workload.intensity"] == -3.0
    assert all(np.isfinite(list(small.values())))


def test_a_matrix_has_the_names_asked_for_in_their_order():
    space = toy_space(product(), made_up_cpu())
    rows = points(space, 20)
    names = ["tile.rows", "other_template.rows", "workload.m", "schedule.vector_fraction"]
    matrix = feature_matrix(space, rows, names)
    assert matrix.shape == (len(rows), 4)
    assert matrix.dtype == np.float32
    assert np.isnan(matrix[:, 1]).all()
    assert (matrix[:, 2] == 9.0).all()
    np.testing.assert_allclose(matrix[:, 0], np.log2(1 + space.decision_columns(rows)["tile.rows"]))


def test_what_a_template_does_not_report_is_nan_and_not_infinite():
    space = toy_space(product(), made_up_cpu())
    rows = points(space, 20)
    space.templates["tile"].quantities = lambda columns: {"near_bytes": 0.0 * columns["rows"]}
    names = list(features(space, rows))
    matrix = feature_matrix(space, rows, names)
    assert not np.isinf(matrix).any()
    assert np.isnan(matrix[:, names.index("roofline.seconds")]).all()
    assert np.isfinite(matrix[:, names.index("schedule.near_bytes_per_flop")]).all()


def test_decisions_of_another_template_are_nan():
    class Other(TileTemplate):
        name = "other"

    work, machine = product(), made_up_cpu()
    space = Space(work, machine, [TileTemplate(work, machine), Other(work, machine)])
    rows = points(space, 60)
    columns = features(space, rows)
    tile = columns["template.tile"] == 1.0
    assert 0 < tile.sum() < len(rows)
    assert np.isnan(columns["tile.rows"][~tile]).all()
    assert np.isfinite(columns["tile.rows"][tile]).all()
    assert np.isnan(columns["other.rows"][tile]).all()


def test_differences_of_workload_and_target_show():
    assert workload_features(product(dtype="bfloat16")) != workload_features(product())
    assert workload_features(product(a="col")) != workload_features(product())
    assert target_features(made_up_cpu(threads=2)) != target_features(made_up_cpu())


def test_names_of_features_are_of_a_kind_and_of_some_length():
    longest = "axis." + "n" * (LONGEST_NAME - 5)
    assert is_feature(longest)
    others = (longest + "n", "axis", "axis.", ".n", "axis.n\n", "roofline.magic", "target.color")
    assert not any(map(is_feature, others))


def test_features_of_a_further_kind_of_target_are_known(monkeypatch):
    @dataclass(frozen=True)
    class Abacus(Target):
        kind: ClassVar[str] = "abacus"
        beads: int

    assert not is_feature("target.beads")
    monkeypatch.setattr(backends, "_BACKENDS", dict(backends._BACKENDS))
    monkeypatch.setattr(sys.modules[__name__], "Abacus", Abacus, raising=False)
    backends.register(replace(backends.backend("cpu"), kind="abacus", target=f"{__name__}:Abacus"))
    assert set(target_features(Abacus(7))) == {"target.beads"}
    assert is_feature("target.beads")
