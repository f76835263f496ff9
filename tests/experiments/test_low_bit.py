"""The comparison of weights of few bits, on a product that takes no time; what a GPU would be given
is checked on the emulator."""

import json

import numpy as np
import pytest
import torch

from experiments.low_bit import gpu, gpu_experts
from experiments.low_bit.__main__ import main
from experiments.low_bit.formats import GPU_NAMES, MXFP4, Format
from experiments.low_bit.routing import Layer, segments
from experiments.models.choosing import build
from tilewright.measure.cuda.emulator import Emulator
from tilewright.spaces.cuda.low_bit_ring import LowBitRing
from tilewright.spaces.space import Space
from tilewright.spaces.target import detect_target

TARGET = detect_target("cuda:sm_90a")


def test_a_comparison_writes_its_results(tmp_path, capsys):
    out = tmp_path / "results.json"
    given = [
        "--shape",
        "1x64x128",
        "--dtypes",
        "uint3",
        "uint4_int8",
        "--seconds",
        "0",
        "--rounds",
        "3",
    ]
    assert main([*given, "--out", str(out), "--db", str(tmp_path / "none.db")]) == 0
    made = json.loads(out.read_text())
    assert {"uint3", "uint4_int8", "float32", "torch float32"} <= set(made["times"])
    assert "uint3" in capsys.readouterr().out


def test_a_comparison_of_experts_writes_its_results(tmp_path):
    out = tmp_path / "results.json"
    given = ["--experts", "--shape", "3x2x5x64x128", "--dtypes", "uint3", "--seconds", "0"]
    assert main([*given, "--rounds", "3", "--out", str(out), "--db", str(tmp_path / "no.db")]) == 0
    made = json.loads(out.read_text())
    assert made["times"].keys() == {"uint3", "torch float32", "torch bfloat16"}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--shape", "3x2x5x64"], "3x2x5x64 is no layer of experts; allowed: TOKENSxCHOSENx"),
        (["--shape", "3x6x5x64x128"], "6 of 5 experts; allowed: at most all"),
        (["--dtypes", "uint4_int8"], "of uint4_int8; allowed: one layer"),
    ],
)
def test_layers_that_do_not_exist_are_refused(more, words, capsys):
    assert main(["--experts", *more]) == 2
    assert words in capsys.readouterr().err


def test_experts_have_the_exact_outputs_that_are_said():
    layer, kernels, cases = Layer(20, 2, 5, 48, 256), [], []
    torch.manual_seed(0)
    for name in ("uint4", "float4_e2m1", MXFP4):
        own = gpu_experts.Weights.draw(name, layer.experts, layer.columns, layer.depth, "cpu")
        w = Format(name).product(layer.rows, layer.columns, layer.depth, gpu.KIND, layer.experts)
        space = Space(w, TARGET, [LowBitRing(w, TARGET)])
        kernels.append(space.lower(space.schedule(space.sample(np.random.default_rng(0), 9)[0])))
        a, table = torch.randn(layer.rows, layer.depth).to(torch.bfloat16), layer.table(0)
        tensors = {"e": torch.from_numpy(table), "q": own.packed, "a": a, "s": own.scales}
        cases.append((tensors, own.product(a, table)))
    with Emulator() as emulator:
        emulator.build(kernels)
        for kernel, (tensors, exact) in zip(kernels, cases, strict=True):
            inputs = {name: _array(tensor) for name, tensor in tensors.items()}
            found = emulator.run(kernel, inputs).outputs["y"].astype("f8")
            np.testing.assert_allclose(found, exact.numpy(), rtol=2**-6, atol=1e-2)
            assert abs(exact).mean() > 0.1


def test_tables_choose_different_experts_for_each_token():
    layer = Layer(64, 8, 256, 16, 64)
    tables = [layer.table(seed) for seed in range(3)]
    assert not np.array_equal(tables[0], tables[1])
    for table in tables:
        assert np.all(np.diff(table) >= 0)
        assert np.bincount(table).max() <= layer.tokens
        parts = list(segments(table))
        assert [first for _, first, _ in parts] == [0, *(end for *_, end in parts[:-1])]
        assert all((table[first:end] == expert).all() for expert, first, end in parts)
        assert parts[-1][2] == len(table) == 512


def test_several_shapes_are_refused_on_a_cpu(capsys):
    assert main(["--shape", "1x64x128", "2x64x128"]) == 2
    assert "allowed: one shape" in capsys.readouterr().err


def test_what_a_gpu_is_given_has_the_exact_outputs_that_are_said():
    shape, kernels, cases = (2, 32, 256), [], []
    torch.manual_seed(0)
    for name in GPU_NAMES:
        workload = Format(name).product(*shape, gpu.KIND)
        names = [array.name for array in workload.inputs]
        assert names == list("qasd" if Format(name).has_bytes else "qas")
        (built,) = build(workload, TARGET, (), 1, 1)
        kernels.append(built.candidate.kernel)
        tensors, exact = gpu.drawn(Format(name), shape, "cpu")
        cases.append(({name: tensors[name] for name in names}, exact))
    with Emulator() as emulator:
        emulator.build(kernels)
        for kernel, (tensors, exact) in zip(kernels, cases, strict=True):
            inputs = {name: _array(tensor) for name, tensor in tensors.items()}
            found = emulator.run(kernel, inputs).outputs["y"].astype("f8")
            np.testing.assert_allclose(found, exact.numpy(), rtol=2**-8, atol=1e-6)


def _array(tensor: torch.Tensor) -> np.ndarray:
    if tensor.dtype != torch.bfloat16:
        return tensor.numpy()
    import ml_dtypes

    return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)


def test_a_table_has_a_line_for_each_format_and_later_shapes_begin_with_the_fastest():
    workload = Format("uint4").product(1, 64, 256, gpu.KIND)
    (built,) = build(workload, TARGET, (), 1, 1)
    schedule = built.candidate.schedule
    times = {"median_s": 2e-6, "least_s": 1e-6, "quartiles_s": [1e-6, 3e-6]}
    timed = {**times, "bytes": 4000, "explored": [{"us": 2.0, "schedule": schedule.to_json()}]}
    row = {
        "rivals": {gpu.MM: times, gpu.COPY: times},
        "formats": {"uint4": timed, "uint1": {"explored": []}},
    }
    results = {"date": "today", "command": "this", "shapes": {"1x64x256": row}}
    lines = gpu.table(results).splitlines()
    assert sum("| uint4 | 2.0 | 1.0 | 2 |" in line for line in lines) == 1
    assert "1.00 | - |" in next(line for line in lines if "uint4" in line)
    assert any(line.startswith("| uint1 | - |") for line in lines)
    known = gpu.known_of(results)
    assert known.own("uint4") == [schedule]
    assert known.own("uint1") == []


def test_copies_are_many_times_a_cache():
    tensors = [torch.zeros(1 << 20), torch.zeros(16)]
    copies = gpu.copies_of(tensors)
    assert len(copies) == gpu.MOST_COPIES
    assert len({each[0].data_ptr() for each in copies}) == gpu.MOST_COPIES


def test_only_new_neighbours_are_built():
    workload = Format("uint4").product(8, 64, 1024, gpu.KIND)
    (first,) = build(workload, TARGET, (), 1, 1)
    schedule = first.candidate.schedule
    found = {b.candidate.schedule for b in gpu.neighbours(workload, TARGET, [schedule], [], 1)}
    more = gpu.neighbours(workload, TARGET, [schedule], found, 1)
    assert found.isdisjoint(built.candidate.schedule for built in more)
    assert len(found) == gpu.FURTHER
