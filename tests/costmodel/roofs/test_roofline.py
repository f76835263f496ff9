from __future__ import annotations

import json

import numpy as np
import pytest

from tilewright.costmodel.roofs.analytic import AnalyticModel
from tilewright.costmodel.roofs.peaks import MeasuredPeaks, peaks_for
from tilewright.costmodel.roofs.roofline import ideal_seconds, roofline_seconds
from tilewright.costmodel.sizes import evenness
from tilewright.costmodel.testing.cost_model import CostModelContract
from tilewright.costmodel.testing.toys import examples, points, product, toy_space
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.errors import InputError
from tilewright.spaces.quantities import QUANTITIES
from tilewright.spaces.testing.targets import made_up_cpu


class TestAnalyticModel(CostModelContract):
    def make(self):
        return AnalyticModel(space_for=toy_space)

    def load(self, path):
        return AnalyticModel.load(path, space_for=toy_space)


def quantities(work, **changes):
    """A schedule that does exactly the work, from registers alone, on all workers."""
    zero = {name: np.zeros(1) for name in QUANTITIES}
    ideal = {
        "flops": np.array([float(work.flops)]),
        "useful_flops": np.array([float(work.flops)]),
        "worker_fraction": np.ones(1),
        "imbalance": np.ones(1),
        "independent_chains": np.array([24.0]),
    }
    return zero | ideal | {name: np.array([float(v)]) for name, v in changes.items()}


def seconds(work=None, machine=None, **changes):
    work = work or product()
    return float(
        roofline_seconds(
            work, quantities(work, **changes), peaks_for(work, machine or made_up_cpu())
        )[0]
    )


def test_nothing_but_arithmetic_takes_the_time_of_the_arithmetic():
    work = product()
    assert seconds() == pytest.approx(
        work.flops / peaks_for(product(), made_up_cpu()).flops, rel=0.01
    )


@pytest.mark.parametrize(
    "worse",
    [
        {"flops": 4e8},
        {"instructions": 1e9},
        {"register_bytes": 1e10},
        {"near_bytes": 1e10},
        {"middle_bytes": 1e10},
        {"main_bytes": 1e10},
        {"packing_bytes": 1e9},
        {"epilogue_elements": 1e8},
        {"worker_fraction": 0.5},
        {"imbalance": 2.0},
        {"independent_chains": 2.0},
        {"register_fraction": 1.5},
        {"synchronisations": 1e4},
        {"tile_visits": 1e6},
    ],
)
def test_each_burden_costs_time(worse):
    assert seconds(**worse) > 1.05 * seconds()


def test_a_bound_kernel_takes_little_longer_than_its_bound():
    main = 64e9
    alone = main / peaks_for(product(), made_up_cpu()).main_bandwidth
    assert alone < seconds(main_bytes=main) < 1.1 * alone


def test_more_threads_and_wider_vectors_are_faster():
    assert seconds(machine=made_up_cpu(threads=2)) < 0.6 * seconds()
    assert seconds(machine=made_up_cpu(vector_bytes=32)) > 1.8 * seconds()


def test_bfloat16_is_faster_only_with_its_instruction():
    work = product(dtype="bfloat16")
    assert seconds(work, made_up_cpu(bf16_dot=True)) < 0.6 * seconds(work, made_up_cpu())


def test_measured_peaks_move_the_roofs():
    work, machine = product(), made_up_cpu()
    peaks = peaks_for(work, machine, MeasuredPeaks(flops=50e9, main_bandwidth=5e9))
    assert peaks.flops == pytest.approx(50e9)
    assert peaks.main_bandwidth == pytest.approx(5e9)
    assert peaks.near_bandwidth == peaks_for(work, machine).near_bandwidth
    assert ideal_seconds(work, peaks) == pytest.approx(work.flops / 50e9)


def test_a_measured_rate_is_that_of_float32():
    wide = peaks_for(product(dtype="float64"), made_up_cpu(), MeasuredPeaks(flops=50e9))
    assert wide.flops == pytest.approx(25e9)


def test_a_gpu_has_tensor_peaks_for_narrow_types_only():
    gpu = cuda_target("sm_90a")
    narrow, wide = (peaks_for(product(dtype=d), gpu).flops for d in ("bfloat16", "float32"))
    assert narrow > 8 * wide
    assert peaks_for(product(), gpu).main_bandwidth == gpu.bandwidth


def test_each_visit_of_a_tile_costs_a_gpu_some_hundred_cycles_of_a_multiprocessor():
    gpu = cuda_target("sm_90a")
    cycles = gpu.clock * gpu.multiprocessors / peaks_for(product(), gpu).visits
    assert 100 <= cycles <= 10_000
    visits = 1e5 * gpu.multiprocessors
    assert seconds(machine=gpu, tile_visits=visits) > 1e5 * cycles / gpu.clock


def test_calibration_brings_estimates_to_measured_seconds():
    space = toy_space(product(), made_up_cpu())
    known = examples(space, points(space, 200))
    model = AnalyticModel(space_for=toy_space)
    model.fit(known)
    best = min(known, key=lambda e: e.latency)
    found = model.latency(space, space.rows([best.schedule]))[0]
    assert 0.5 < found / best.latency < 2.0


def test_calibration_does_not_change_the_ranking():
    space = toy_space(product(), made_up_cpu())
    rows = points(space, 100, seed=1)
    model = AnalyticModel(space_for=toy_space)
    before = model.predict(space, rows)[0]
    model.fit(examples(space, points(space, 50)))
    np.testing.assert_array_equal(model.predict(space, rows)[0], before)


def test_a_template_without_quantities_is_judged_by_its_sizes():
    space = toy_space(product(), made_up_cpu())
    space.templates["tile"].quantities = lambda columns: {}
    rows = points(space, 10)
    score, uncertainty = AnalyticModel().predict(space, rows)
    np.testing.assert_array_equal(score, 0.5 * evenness(space, rows))
    assert set(uncertainty) == {0.5}


def test_a_saved_factor_is_a_number(tmp_path):
    path = tmp_path / "model.json"
    AnalyticModel().save(path)
    assert json.loads(path.read_text())["scale"] == 1.0


@pytest.mark.parametrize("scale", ["NaN", "1e999", "0", "-1", "1" + "0" * 400, "[" * 100_000])
def test_a_factor_that_is_none_is_refused(tmp_path, scale):
    path = tmp_path / "model.json"
    AnalyticModel(space_for=toy_space).save(path)
    path.write_text(path.read_text().replace('"scale": 1.0', f'"scale": {scale}'))
    with pytest.raises(InputError, match="is not a Tilewright model"):
        AnalyticModel.load(path, toy_space)
