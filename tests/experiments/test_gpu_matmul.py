"""The GPU comparison as far as it runs without one: its cases, order, summary and refusal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments import gpu_matmul
from experiments.gpu_matmul import orders
from experiments.gpu_matmul.cases import all_cases
from experiments.gpu_matmul.known import known_records
from experiments.gpu_matmul.processes import map_in_processes
from experiments.gpu_matmul.reading import kernels
from experiments.gpu_matmul.summary import draw, in_turn, summarise
from tilewright.measure.cuda.compilation import compile_cubin
from tilewright.measure.cuda.cubin import read_cubin
from tilewright.measure.cuda.emulator import INTERLEAVINGS, Emulator
from tilewright.measure.cuda.sass import count
from tilewright.measure.database import Database
from tilewright.spaces.cuda.intrinsics import device_text
from tilewright.spaces.kernel import Kernel, Source, arguments
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import detect_target
from tilewright.spaces.workloads.matmul import Operand

SIZE = 4096 * 14336 * 2


def row(ours: float | None, cublas: float, triton: float | None, *regimes: str) -> dict:
    times = {"tilewright": ours, "cublas": cublas, "triton": triton}
    known = {name: t for name, t in times.items() if t is not None}
    return {"regimes": list(regimes), "median_s": known, "tuning_seconds": 5.0}


def test_the_cases_are_those_of_the_comparison():
    cases = all_cases()
    assert len({case.name for case in cases}) == len(cases) == 6 + 40 - 1 + 16 + 16
    layers = [case for case in cases if "layers" in case.regimes]
    assert len(layers) == 40
    assert sum("layers, m <= 128" in case.regimes for case in cases) == 24
    assert all(case.regimes for case in cases)


def test_every_case_has_a_space():
    target = detect_target("cuda:sm_90a")
    for case in all_cases():
        space = space_for(case.workload, target)
        tensor_cores = case.dtype != "float32" and case.m % 16 == 0
        assert ("hopper" in space.templates) >= tensor_cores, case.name


def test_the_summary_names_the_losses():
    cases = {
        "a": row(1.0, 2.0, 4.0, "layers", "squares"),
        "b": row(1.0, 0.5, None, "layers"),
        "c": row(None, 0.5, 1.0, "layers"),
    }
    summary = summarise(cases)
    losing = {"cases": 2, "geomean": pytest.approx(1.0), "least": 0.5, "losses": ["b"]}
    assert summary["layers"]["cublas"] == losing
    assert summary["layers"]["triton"]["cases"] == 1
    assert summary["squares"]["cublas"]["losses"] == []
    assert summary["layers"]["fastest"] == losing
    assert summarise({}) == {}


def test_a_second_call_takes_what_was_tuned_least():
    cases = all_cases()
    done = {case.name: row(1.0, 1.0, 1.0, "layers") for case in cases[:5]}
    done[cases[1].name]["tuning_seconds"] = 2.0
    order = in_turn(cases, done)
    assert order[:-5] == cases[5:]
    assert order[-5:] == [cases[1], cases[0], *cases[2:5]]


def test_the_chart_is_drawn(tmp_path):
    cases = {"a": row(1.0, 2.0, None, "layers"), "b": row(1.0, 0.5, 2.0, "squares")}
    draw(cases, tmp_path / "chart.svg")
    assert "over cublas" in (tmp_path / "chart.svg").read_text()
    draw({}, tmp_path / "empty.svg")


@pytest.mark.skipif(os.path.exists("/dev/nvidia0"), reason="there is a GPU here")
def test_without_a_gpu_it_says_so(tmp_path):
    command = [sys.executable, "-m", "experiments.gpu_matmul", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("gpu_matmul: target 'cuda' needs an NVIDIA GPU")
    assert not (tmp_path / "out").exists()


class Where:
    """A bench that tells where a case is run, and dies of one of them."""

    def __enter__(self):
        return self.run

    def __exit__(self, *error):
        pass

    def run(self, case):
        if case == "deadly":
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.1 if case.startswith("long") else 0.0)
        return os.environ["CUDA_VISIBLE_DEVICES"], os.getpid(), len(os.sched_getaffinity(0))


def test_cases_are_shared_out_among_processes():
    cases = [*(f"long {i}" for i in range(4)), *(f"short {i}" for i in range(4))]
    found = dict(map_in_processes(cases, ["0", "3"], Where()))
    assert sorted(found) == sorted(cases)
    where = {(gpu, process) for gpu, process, _ in found.values()}
    assert {gpu for gpu, _ in where} == {"0", "3"}
    assert len(where) == 2
    cpus = len(os.sched_getaffinity(0))
    assert {share for *_, share in found.values()} == {max(1, cpus // 2)}


def test_a_process_that_dies_takes_one_case_along(capfd):
    found = dict(map_in_processes(["deadly", "a", "b", "c"], ["0", "1"], Where()))
    assert sorted(found) == ["a", "b", "c"]
    assert "deadly: its process ended" in capfd.readouterr().out


def test_cases_are_asked_for_when_they_are_due():
    asked = []

    def cases():
        for name in "abc":
            asked.append(name)
            yield name

    outcomes = map_in_processes(cases(), ["0"], Where())
    next(outcomes)
    assert asked == ["a"]
    assert [case for case, _ in outcomes] == ["b", "c"]


def test_a_run_begins_with_the_winners_of_an_earlier_one(tmp_path):
    target = detect_target("cuda:sm_90a")
    case, other = all_cases()[-2:]
    space = space_for(case.workload, target)
    schedule = space.schedule(space.sample(np.random.default_rng(0), 1)[0])
    gone = {"template": "gone", "decisions": {}}
    rows = {
        case.name: row(2e-5, 3e-5, None) | {"schedule": schedule.to_json()},
        other.name: row(2e-5, 3e-5, None) | {"schedule": gone},
    }
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"cases": rows}))
    with Database(tmp_path / "tuning.db") as database:
        database.record_all(list(known_records(path, all_cases(), target)))
        (found,) = database.records(case.workload, target)
        assert (found.schedule, found.measurement.score) == (schedule, 2e-5)
        assert not list(database.records(other.workload, target))


def test_a_winner_of_before_a_decision_is_known_as_what_it_was(tmp_path):
    target = detect_target("cuda:sm_90a")
    (case,) = (case for case in all_cases() if case.name == "64x10240x8192 bfloat16")
    path = tmp_path / "results.json"
    schedule = {"template": "hopper", "decisions": _recorded_before_streams()}
    rows = {case.name: row(4e-5, 4e-5, None) | {"schedule": schedule}}
    path.write_text(json.dumps({"cases": rows}))
    (record,) = known_records(path, all_cases(), target)
    assert record.schedule["evict_first"] is False


def _recorded_before_streams() -> dict:
    results = Path(gpu_matmul.__file__).parent / "results"
    row = json.loads((results / "layers_two_gpus.json").read_text())["cases"]
    decisions = row["64x10240x8192 bfloat16"]["schedule"]["decisions"]
    assert "streams" not in decisions
    return decisions


@pytest.mark.parametrize(
    ("found", "count_of"), [(list(kernels(SIZE)), 16), (list(orders.kernels(14336, 8192)), 14)]
)
def test_ways_to_read_a_weight_read_all_of_it_in_wide_loads(found, count_of):
    assert len({kernel.call.entry for kernel in found}) == count_of
    for kernel in found:
        threads, blocks = kernel.call.launches[0].block[0], kernel.call.launches[0].grid[0]
        compiled = compile_cubin(
            device_text(kernel.source.text) + kernel.source.text, "sm_90a", 60.0, lambda: False
        )
        assert compiled.cubin is not None, compiled.log
        loads = count(read_cubin(compiled.cubin, kernel.call.entry).code)
        assert blocks * threads * 16 * loads["LDG.128"] == SIZE
        assert loads["LDG"] == loads["LDG.128"]


@pytest.mark.parametrize("order", orders.ORDERS)
def test_pieces_are_read_along_rows_or_across_them(order):
    """What neighbouring blocks read of 512 rows of 512 bytes, by 128 of them."""
    rows, bytes = 512, 512
    (kernel,) = (k for k in orders.kernels(rows, bytes) if k.call.entry == f"read_128_{order}")
    weight = np.arange(rows * bytes // 4, dtype=np.int32)
    text = kernel.source.body.replace("if (all == 0x9e3779b9u)", "if (threadIdx.x == 0)")
    text = text.replace("store_global(out, all)", "store_global(out + blockIdx.x, held[0])")
    out = Operand("out", "int32", (8,), (0,), axes=("i",))
    call = replace(kernel.call, arguments=arguments([kernel.call.read[0]], [out]))
    with Emulator() as emulator:
        made = Kernel(Source("cuda", "", text), call)
        found = emulator.run(made, {"from": weight}, INTERLEAVINGS[0])
    first, second = 256 * bytes // 4, 128 // 4
    along = [tile * first + step * second for tile in range(2) for step in range(4)]
    across = [tile * first + step * second for step in range(4) for tile in range(2)]
    assert found.error_kind is None, found.error_text
    assert found.output.tolist() == {"along": along, "across": across}[order]
