import pytest

pytest.importorskip("torch")

from experiments.kernelbench.coverage import coverage, summary
from experiments.kernelbench.problems import problems
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
