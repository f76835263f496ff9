import json

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tests.scheduler.cli.command import ask  # noqa: E402
from tests.scheduler.torch import blocks  # noqa: E402
from tilewright import InputError, extract, workload  # noqa: E402
from tilewright.scheduler.cli.app import run  # noqa: E402
from tilewright.scheduler.suites.suite import read_suite  # noqa: E402
from tilewright.scheduler.torch.extraction.model_file import model_function  # noqa: E402
from tilewright.scheduler.torch.extraction.suite_file import suite_text  # noqa: E402

FILE = """
import torch
from torch import nn


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(32, 32), nn.Linear(32, 32)

    def forward(self, x):
        return torch.sort(self.second(torch.relu(self.first(torch.relu(x))))).values


class Uneven(nn.Module):
    def forward(self, x):
        return x @ torch.ones(3, 3)


def twice(rows):
    return Twice(), (torch.empty(rows, 32),)


def uneven():
    return Uneven(), (torch.empty(2, 4),)


def failing():
    return 1 / 0


def alone():
    return Twice()


def nothing():
    return nn.Identity(), (torch.empty(2),)


def phased(tokens, phase, draft=0):
    assert (phase == "decode") or not draft
    return nn.Linear(32, 64 if phase == "decode" else 96), (torch.empty(tokens, 32),)


def parallel(tp):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (tp,))
    return parallelize_module(nn.Linear(32, 96), mesh, ColwiseParallel()), (torch.empty(8, 32),)


def sharded(tp):
    return nn.Linear(32, 96 // tp), (torch.empty(8, 32),)
"""


@pytest.fixture
def model(here):
    (here / "model.py").write_text(FILE)
    return here / "model.py"


class Broken(nn.Module):
    """Layers with Python between them that no graph holds."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(32, 48), nn.Linear(48, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.first(x))
        torch._dynamo.graph_break()
        return self.second(y[:, : 2 * len(y)])


def test_graphs_are_captured_one_after_the_other() -> None:
    """What one gives, the next one takes, though nothing is computed."""
    found = extract(Broken(), (torch.empty(24, 32),)).found
    products = sorted(dict(each.workload.parameters)["n"] for each in found)
    assert products == [16, 48]


def test_equal_regions_are_one_workload_with_a_weight() -> None:
    found = extract(blocks.Mlp(), (torch.empty(20, 48),))
    assert [each.weight for each in found.found] == [1, 1]
    assert [each.name for each in found.found] == ["up", "down"]
    pair = extract(nn.Sequential(blocks.Mlp(), blocks.Mlp()), (torch.empty(20, 48),))
    assert [each.weight for each in pair.found] == [2, 2]
    assert {e.workload.key for e in pair.found} == {e.workload.key for e in found.found}
    assert sum(pair.shares(each)[0] for each in pair.found) == pytest.approx(1)
    assert sum(pair.shares(each)[1] for each in pair.found) == pytest.approx(1)
    assert pair.covered == 1
    assert not pair.left


def test_keys_are_those_that_people_write() -> None:
    found = extract(blocks.Mlp(), (torch.empty(20, 48),))
    up, down = (each.workload.key for each in found.found)
    assert up == workload('matmul m=20 n=96 k=48 b=col epilogue="gelu(x + bias[n])"').key
    assert down == workload('matmul m=20 n=48 k=96 b=col epilogue="x + bias[n]"').key


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_weights_may_be_on_meta_and_of_another_dtype(dtype: str) -> None:
    with torch.device("meta"):
        module, x = blocks.Gpt2().eval(), torch.empty(1, 20, 48)
    found = extract(module, (x,), dtype=dtype)
    assert found.covered == 1
    assert {array.dtype for each in found.found for array in each.workload.operands} == {dtype}
    assert next(module.parameters()).device.type == "meta"


def test_a_model_is_extracted_for_a_gpu_that_is_not_here() -> None:
    found = extract(blocks.Mlp(), (torch.empty(16, 48),), dtype="bfloat16", target="cuda:sm_90a")
    assert found.covered == 1


def test_a_suite_has_what_was_extracted(model, capsys) -> None:
    words = ("--rows", "decode=1", "--rows", "prefill=8,16", "--out", "suite.toml")
    text = ask(capsys, "extract", f"{model}:twice", *words)
    assert "left to PyTorch: 3 x sort: no rule translates it" in text
    suite = read_suite("suite.toml")
    assert suite.sections == ("decode", "prefill")
    assert [member.weight for member in suite.section("prefill").members] == [1] * 4
    assert [member.weight for member in suite.section("decode").members] == [1] * 2
    assert {member.name for member in suite.section("decode").members} == {
        "decode 1 first",
        "decode 1 second",
    }
    with open("suite.toml") as file:
        assert "# 100.0% of the FLOPs" in file.readline()


def test_programs_survive_the_file(here) -> None:
    found = extract(blocks.BLOCKS["bert"]()[0].eval(), (torch.empty(1, 20, 48),))
    (here / "bert.toml").write_text(suite_text(found))
    keys = [member.workload.key for member in read_suite(here / "bert.toml").members]
    assert keys == [each.workload.key for each in found.found]


def test_the_answer_as_json(model, capsys) -> None:
    answer = ask(capsys, "extract", f"{model}:twice", "--rows", "decode=4", "--format", "json")
    found = json.loads(answer)
    assert found["covered"] == 1
    assert {"operator": "sort", "reason": "no rule translates it", "count": 1} in found["left"]
    assert [each["places"] for each in found["workloads"]] == [
        {"decode 4 first": 1},
        {"decode 4 second": 1},
    ]


def test_phases_weigh_their_rows_and_drafts(model) -> None:
    function = model_function(f"{model}:phased")
    rows = {"decode": {2: 0.25, 8: 0.75}, "prefill": [8]}
    found = extract(function, rows=rows, draft={0: 0.5, 3: 0.5})
    weights = {each.workload.key: each.sections for each in found.found}
    epilogue = "x + bias[n]"
    wanted = {(2, 64): 0.125, (8, 64): 0.5, (32, 64): 0.375}
    keys = {
        workload("matmul", m=m, n=n, k=32, b="col", epilogue=epilogue).key: {"decode": weight}
        for (m, n), weight in wanted.items()
    }
    one = workload("matmul", m=8, n=96, k=32, b="col", epilogue=epilogue).key
    assert weights == keys | {one: {"prefill": 1}}
    decode = found.suite().section("decode")
    assert sum(member.weight for member in decode.members) == 1


def test_shards_are_sections_of_a_group_that_is_not_there(model) -> None:
    found = extract(model_function(f"{model}:sharded"), tp=[1, 3])
    assert [set(each.sections) for each in found.found] == [{"tp1"}, {"tp3"}]
    assert [each.workload.outputs[0].shape[-1] for each in found.found] == [96, 32]
    assert not torch.distributed.is_initialized()


def test_distributed_weights_are_seen_as_the_first_rank_has_them(model) -> None:
    found = extract(model_function(f"{model}:parallel"), tp=[3])
    assert [each.workload.outputs[0].shape for each in found.found] == [(8, 32)]
    with pytest.raises(InputError, match="tp=5 does not divide a weight of 96 evenly"):
        extract(model_function(f"{model}:parallel"), tp=[5])


def test_training_has_the_regions_of_forward_and_backward() -> None:
    module = nn.Sequential(nn.Linear(48, 96), nn.Tanh(), nn.Linear(96, 64))
    found = extract(module, (torch.empty(20, 48),), training=True)
    places = [place.split()[0] for each in found.found for place in each.places]
    assert found.covered == 1
    assert places.count("forward") == 2
    assert places.count("backward") >= 3  # two weights and the inner activation


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.py:f"], "there is no file 'nowhere.py'"),
        (["model.py"], "'model.py' names no function; allowed: MODEL.py:function"),
        (["model.py:f"], "model.py has no function 'f'"),
        (["model.py:twice"], "the function twice takes rows"),
        (["model.py:failing", "--rows", "decode=1"], "the function failing takes no rows"),
        (
            ["model.py:twice", "--rows", "draft=1"],
            "unknown phase 'draft'; allowed: decode",
        ),
        (["model.py:twice", "--rows", "decode"], "--rows 'decode'; allowed: such as decode=1,8,64"),
        (["model.py:twice", "--rows", "decode=1:x"], "--rows 'decode=1:x'; allowed: such as"),
        (["model.py:twice", "--rows", "decode=1:0"], "weight of rows of decode=0.0 is out"),
        (["model.py:twice", "--rows", "prefill=1", "--draft", "3"], "a draft is for decoding"),
        (["model.py:twice", "--rows", "decode=1", "--draft", "x"], "--draft 'x'; allowed: such"),
        (["model.py:twice", "--rows", "decode=1", "--tp", "2"], "the function twice takes no tp"),
        (["model.py:sharded", "--tp", "2:1"], "--tp '2:1'; allowed: such as 1,2,8"),
        (["model.py:sharded", "--tp", "0"], "tp=0 is out of range"),
        (["model.py:twice", "--rows", "decode=0"], "rows of decode=0 is out of range"),
        (["model.py:twice", "--rows", "decode=1", "--dtype", "int8"], "dtype='int8' is none of"),
        (["model.py:uneven"], "RuntimeError at model.py:17: a and b must have same reduction dim"),
        (["model.py:failing"], "ZeroDivisionError at model.py:29: division by zero"),
        (["model.py:alone"], "the function returns a Twice; allowed: a module and a tuple"),
        (["model.py:nothing"], "no kernel computes any part of the model: it is empty"),
    ],
)
def test_bad_input_is_one_line(words, said, model, capsys) -> None:
    assert run(["extract", *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"tilewright: {said}")
    assert error.count("\n") == 1
    assert len(error) <= 213


def test_a_suite_takes_the_place_of_no_folder(model, capsys) -> None:
    words = ["extract", f"{model}:twice", "--rows", "decode=1", "--out", "."]
    assert run(words) == 2
    assert "is no file; a suite goes to a new file or replaces one" in capsys.readouterr().err


def test_a_file_that_fails_names_its_line(here, capsys) -> None:
    (here / "broken.py").write_text("x = 1\nraise ValueError('no model today')\n")
    assert run(["extract", "broken.py:f"]) == 2
    assert capsys.readouterr().err == "tilewright: ValueError at broken.py:2: no model today\n"


def test_rows_are_for_functions() -> None:
    with pytest.raises(InputError, match="rows are for a function"):
        extract(blocks.Mlp(), (torch.empty(20, 48),), {"decode": [1]})
