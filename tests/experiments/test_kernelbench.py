import pytest

pytest.importorskip("torch")

import torch

from experiments.kernelbench.coverage import coverage, summary
from experiments.kernelbench.problems import problems
from experiments.kernelbench.sizes import shrunk
from experiments.tritonbench import problems as tritonbench
from tilewright.spaces.target import detect_target

PROBLEM = """
import torch


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = torch.nn.Linear(width, 48)

    def forward(self, x):
        return torch.sort(torch.relu(self.layer(x))).values


def get_inputs():
    return [torch.rand(8, 32)]


def get_init_inputs():
    return [32]
"""


def test_a_problem_is_covered_without_memory_and_filtered_by_its_number(tmp_path):
    folder = tmp_path / "KernelBench" / "level1"
    folder.mkdir(parents=True)
    for name in ("8_irregular.py", "10_cube.py", "9_tall.py"):
        (folder / name).write_text(PROBLEM)
    found = list(problems(tmp_path, [1]))
    assert [(each.number, each.kept) for each in found] == [(8, False), (9, True), (10, True)]
    told = coverage(found[0], detect_target("cpu"))
    assert (told["covered"], told["flops"], told["regions"]) == (1.0, 2 * 8 * 32 * 48, 1)
    assert told["left"] == {"sort": 1}
    facts = summary([told, {"failed": "over 1 s"}])
    assert (facts["problems"], facts["captured"], facts["nothing left"]) == (2, 1, 0)


def test_a_problem_whose_call_would_take_long_is_made_smaller(tmp_path):
    folder = tmp_path / "KernelBench" / "level1"
    folder.mkdir(parents=True)
    sized = "batch_size = 2**24\n" + PROBLEM.replace("8, 32", "batch_size, 32")
    (folder / "1_long.py").write_text(sized)
    (problem,) = problems(tmp_path, [1])
    made, changes = shrunk(problem, 0.01)
    assert 8 <= changes["batch_size"] < 2**24
    assert made.load().batch_size == changes["batch_size"]
    assert (made.number, made.kept) == (problem.number, problem.kept)
    assert shrunk(problem, 1e9) == (problem, {})


OPERATOR = """
import torch


def scaled_relu(x, scale):
    return torch.relu(x) * scale

########################################
test_results = undefined
"""
TIMING = """
from TorchBench_v1.scaled_relu import scaled_relu
from performance_utils import Performance_Metrics, do_bench_config
import torch
import triton
import triton.language as tl


class performance_metrics(Performance_Metrics):
    def __init__(self, dtype=None, **kwargs):
        super().__init__("scaled_relu", dtype=dtype, **kwargs)

    def get_input_tensors(self):
        self.input_tensors = [(torch.rand(n, dtype=self.dtype), 2.0) for n in (4, 8)]

    def call_op(self, given):
        return scaled_relu(*given).sum()
"""


def test_an_operator_of_tritonbench_is_called_as_its_timing_does(tmp_path):
    operators = tmp_path / "data" / "TritonBench_T_v1"
    timings = tmp_path / "performance_metrics" / "perf_T" / "golden_metrics"
    for folder in (operators, timings):
        folder.mkdir(parents=True)
    (operators / "scaled_relu.py").write_text(OPERATOR)
    (operators / "untimed.py").write_text(OPERATOR)
    (timings / "scaled_relu_perf.py").write_text(TIMING)
    (problem,) = tritonbench.problems(tmp_path)
    ((x, scale),) = problem.load().get_inputs()
    assert (x.shape, x.dtype, scale) == ((8,), torch.float32, 2.0)
    told = coverage(problem, detect_target("cpu"))
    assert (told["regions"], told["left"]) == (1, {})
