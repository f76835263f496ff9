"""The comparison of operators: what is compared is the same, and what the summary says."""

from __future__ import annotations

import json
import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest

from experiments.models.images import Convolution
from experiments.operators.convolutions import EPILOGUES, LAYERS, Layer, convolved, fused
from experiments.operators.exploring.known import known_schedules
from experiments.operators.families.case import Case
from experiments.operators.families.cases import CUMSUM, CUMSUM_DOWN, FAMILIES, case
from experiments.operators.families.layers import layer
from experiments.operators.families.recurrences import (
    GIVEN,
    LINEAR,
    RETAINED,
    Recurrent,
    libraries,
)
from experiments.operators.families.segments import FUSED, LAWS, Segmented
from experiments.operators.families.steps import GATED
from experiments.operators.families.windows import (
    columns,
    depthwise,
    means,
    other_layout,
    pool_first,
    pool_last,
)
from experiments.operators.references import REFERENCES, references
from experiments.operators.summary import FAST, line, summarise, table
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.numerics.allowance import agrees
from tilewright.spaces.registry import space_for


def small(operator: str) -> Case:
    """A small case of an operator, along the axes of those that are measured."""
    measured = [c for families in FAMILIES.values() for cases in families.values() for c in cases]
    axes = next((c.parameters for c in measured if c.operator == operator), (("r", 5), ("c", 33)))
    sizes = {"d": 8, "words": 9, "r": 5, "c": 33}
    sizes |= {"i": 7, "j": 7} if operator in (CUMSUM, CUMSUM_DOWN) else {}
    sizes |= {"t": 128, "s": 128} if operator in (LINEAR, RETAINED, GIVEN, GATED) else {}
    extents = {a: sizes.get(a, 3 + i) for i, (a, _) in enumerate(axes) if a != "dtype"}
    return case(operator, "float32", **extents)


@pytest.mark.parametrize("operator", REFERENCES)
def test_what_torch_computes_is_what_the_operator_says(operator):
    import torch

    work = small(operator).workload
    inputs = work.make_inputs(seed=1)
    wide = {
        name: torch.from_numpy(values.astype(np.float64 if values.dtype.kind == "f" else np.int64))
        for name, values in inputs.items()
    }
    found = REFERENCES[operator](**wide)
    bounds = allowed(work.program, inputs).values()
    for each, (low, high) in zip(
        found if isinstance(found, tuple) else (found,), bounds, strict=True
    ):
        assert agrees(each.numpy(), low, high).all()


def test_a_search_begins_with_what_earlier_runs_found_fast(tmp_path):
    work = small("softmax").workload
    space = space_for(work, cuda_target("sm_90a"))
    rows = space.sample(np.random.default_rng(0), 3)
    first, second, third = (space.schedule(row) for row in rows)
    lacking = [(name, value) for name, value in third.decisions if name != "idle_clusters"]
    older = {"template": "rows", "decisions": dict(lacking)}
    foreign = {"template": "elsewhere", "decisions": {"vector": 3}}

    def run(name, *schedules):
        path = tmp_path / name
        explored = [{"us": 1.0, "schedule": schedule} for schedule in schedules]
        path.write_text(json.dumps({"cases": {"softmax": {"explored": explored}}}))
        return path

    one = run("one.json", first.to_json(), second.to_json())
    other = run("other.json", older, foreign)
    assert known_schedules([one, other], "softmax", space) == [first, third, second]
    assert known_schedules([one], "layernorm", space) == []


def test_every_case_has_a_reference_and_a_name_of_its_own():
    for families in FAMILIES.values():
        cases = [case for family in families.values() for case in family]
        assert all("eager" in references(case) for case in cases)
        assert len({case.name for case in cases}) == len(cases)


@pytest.mark.parametrize(
    "further", [{}, {"mask": "causal"}, {"mask": "causal", "window": 3}, {"kv": 2, "i": 1},
     {"mask": "causal", "alibi": 1}, {"i": 1, "alibi": 1, "kv": 2},
     {"mask": "causal", "window": 3, "softcap": 2.0}],
)  # fmt: skip
def test_torch_attends_as_the_program_says(further):
    import torch

    made = case("attention", "float32", **{"b": 1, "h": 4, "i": 7, "j": 9, "d": 8, **further})
    inputs = made.workload.make_inputs(seed=1)
    wide = {n: torch.from_numpy(values.astype(np.float64)) for n, values in inputs.items()}
    low, high = allowed(made.workload.program, inputs)["y"]
    for rival in references(made).values():
        assert agrees(rival(**wide).numpy(), low, high).all()


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("epilogue", [(), (("epilogue", FUSED),)])
def test_torch_multiplies_groups_as_the_program_says(law, epilogue):
    import torch

    words = (("t", 30), ("n", 5), ("k", 7), ("experts", 9), *epilogue)
    made = Segmented("grouped_matmul", words, law=law)
    inputs = made.inputs()
    assert (np.bincount(inputs["expert"], minlength=9) == 0).any() == (law == "zipf")
    kinds = {name: np.float64 if a.dtype.kind == "f" else a.dtype for name, a in inputs.items()}
    wide = {name: torch.from_numpy(array.astype(kinds[name])) for name, array in inputs.items()}
    low, high = allowed(made.workload.program, inputs)["C"]
    assert agrees(references(made)["eager"](**wide).numpy(), low, high).all()


SMALL_WINDOWS = (
    depthwise(4, 7, 2, n=2, layout="NHWC"),
    depthwise(4, 7, 1, n=1, layout="NCHW"),
    pool_last(1, 2, "float32"),
    pool_first(1, 1, "float32"),
    means(2, 3, 5, "float32"),
    columns(7, 3, "float32"),
    layer(3, 9, 5, 7, 2),
    layer(4, 6, 3, 1, 1),
)


@pytest.mark.parametrize("made", SMALL_WINDOWS, ids=lambda made: made.name)
def test_what_torch_computes_is_what_a_window_says(made):
    import torch

    inputs = made.workload.make_inputs(seed=1)
    wide = {name: torch.from_numpy(array.astype(np.float64)) for name, array in inputs.items()}
    work, words = made.workload, dict(made.parameters)
    product = work.matmul
    exact = product.reference(inputs) if product else evaluate(work.program, inputs)["y"]
    np.testing.assert_allclose(references(made)["eager"](**wide).numpy(), exact, atol=1e-6)
    for turned in other_layout(made, wide).values():
        found = turned().permute((0, 2, 3, 1) if words["layout"] == "NHWC" else (0, 3, 1, 2))
        np.testing.assert_allclose(found.numpy().reshape(exact.shape), exact, atol=1e-6)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("kind", EPILOGUES)
@pytest.mark.parametrize(("window", "stride"), [(3, 2), (1, 1)])
def test_what_torch_computes_is_what_a_layer_says(kind, window, stride, layout):
    import torch

    layer = Layer(4, 7, 6, window, stride, kind, batch=2, layout=layout)
    work = layer.workload
    inputs = work.make_inputs(seed=1)
    lying = [
        torch.from_numpy(inputs[array.name].transpose(array.order).astype(np.float64))
        for array in work.inputs
    ]
    arrays = [t.reshape(shape) for t, shape in zip(lying, layer.shapes.values(), strict=True)]
    found = fused(layer, *arrays)
    found = found if layout == "NCHW" else found.permute(0, 2, 3, 1)
    exact = work.matmul.reference(inputs) if work.matmul else evaluate(work.program, inputs)["y"]
    exact = exact.transpose(work.outputs[0].order)
    np.testing.assert_allclose(found.numpy().reshape(exact.shape), exact, atol=1e-9)
    assert convolved(layer, *arrays[:2]).shape == fused(layer, *arrays).shape


def test_layers_have_names_of_their_own():
    assert len({Layer(*shape).name for shape in LAYERS}) == len(LAYERS) == 23


def test_losses_are_named():
    rows = {
        "a": {"operator": "softmax", "median_s": {"tilewright": 2.0, "copy": 1.0, "eager": 1.0}},
        "b": {
            "operator": "softmax",
            "median_s": {"tilewright": 1.0, "eager": 4.0, "compiled": 2.0},
        },
        "c": {"operator": "softmax", "median_s": {"eager": 4.0}},
    }
    found = summarise(rows)["softmax"]
    assert found["cases"] == 2
    assert found["geomean"] == pytest.approx(1.0)
    assert found["losses"] == ["a"]
    assert found["least_of_copy"] == 0.5
    assert "0.500 x the fastest, 0.500 of a copy" in line("a", rows["a"])
    assert "no time" in line("c", rows["c"])


def test_others_work_between_single_calls():
    pytest.importorskip("torch")
    from experiments.operators.cpu import SINGLE, after_other_work

    called = []
    found = after_other_work({name: lambda n=name: called.append(n) for name in "ab"}, 1 << 20)
    assert set(found) == {"a", "b"}
    assert min(found.values()) > 0
    assert called.count("a") == called.count("b") == SINGLE


def test_calls_are_compared_with_copies_of_arrays_of_the_same_kind():
    times = {"tilewright": 4.0, "copy": 3.0, "copy, arrays": 1.0, "tilewright, arrays": 2.0}
    assert "0.500 of a copy" in line("a", {"median_s": times})
    assert "0.750 of a copy" in line("a", {"median_s": {**times, "copy, arrays": 1.8}})
    rows = {"a": {"operator": "map", "median_s": {**times, "eager": 8.0}}}
    assert summarise(rows)["map"]["geomean"] == pytest.approx(2.0)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_copy_of_arrays_is_beside_our_call_on_arrays(threads, dtype):
    from experiments.operators.cpu import compare, target

    work = case("y[j, i] = x[i, j]", dtype, i=40, j=24).workload
    rivals = {"eager": lambda x: x.t().contiguous()}
    row = compare(work, rivals, lambda tensors: {}, target(threads), 1.0, timed=0.2)
    kinds = {"copy", "copy, arrays", "tilewright, arrays"} if threads == 1 else {"copy"}
    assert {name for name in row["median_s"] if "copy" in name or "arrays" in name} == kinds
    assert row["largest_error"] < 0.01


@pytest.mark.parametrize(("window", "is_faster"), [((3, 3), True), ((1, 1), False)])
def test_a_convolution_is_timed_in_the_fast_mode_too_where_that_allows_more(window, is_faster):
    from experiments.operators.cpu import compare, target

    padding = (window[0] // 2, window[1] // 2)
    layer = Convolution(1, 32, 8, 32, window, 1, padding, "relu", "float32")
    row = compare(layer.workload, layer.rivals, layer.others, target(1), 0.5, timed=0.1)
    assert (FAST in row["median_s"]) == ("fast" in row) == is_faster
    text = table({"date": "2026-01-01", "command": "x", "cases": {"a": row}})
    assert ('numerics="fast"' in text) == is_faster


def test_a_convolution_that_is_a_product_is_compared_with_torch():
    from experiments.operators.cpu import compare, target

    layer = Convolution(1, 16, 7, 8, (1, 1), 1, (0, 0), "relu", "float32", residual=True)
    row = compare(layer.workload, layer.rivals, layer.others, target(1), 1.0, timed=0.2)
    assert {"tilewright", "eager", "eager NCHW"} <= set(row["median_s"])
    assert row["largest_error"] < 1e-5


def test_a_table_has_each_case_and_each_rival_and_names_losses():
    rows = {
        "a": {"median_s": {"tilewright": 2e-6, "eager": 4e-6, "compiled": 1e-6}},
        "b": {"median_s": {"tilewright": 1e-6, "eager": 9e-6, "untuned": 4e-6}},
        "c": {"median_s": {"tilewright": 1e-6, "eager": 9e-6, "untuned": 1e-6}},
    }
    text = table({"date": "2026-01-01", "command": "x", "cases": rows})
    assert "| a | 2.0 | 4.0 | 1.0 | - | 0.50 | - |" in text
    assert "| b | 1.0 | 9.0 | - | 4.0 | 9.00 |" in text
    assert "Over eager: 5.45 geometric mean, 2.00 least." in text
    assert "Over untuned" not in text
    assert "Untuned: 0.50 as fast as tuned in geometric mean, 0.25 least." in text
    assert "Losses: a." in text


def test_a_process_opens_the_fast_path_of_mkl_for_itself_alone():
    command = [sys.executable, "-m", "tests.experiments.fast_path", "--threads", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "nothing", "--threads", "2"]


@pytest.mark.parametrize(("text", "function"), [(LINEAR, "linear_attn"), (GIVEN, "simple_gla")])
def test_triton_kernels_get_what_falls_from_position_to_position(monkeypatch, text, function):
    import torch

    name, taken = f"fla.ops.{function}", {}
    for module in ("fla", "fla.ops", name):
        monkeypatch.setitem(sys.modules, module, ModuleType(module))
    kernel = f"chunk_{function}"
    monkeypatch.setattr(
        sys.modules[name],
        kernel,
        lambda *given, **options: taken.update(given=given, options=options),
        raising=False,
    )
    case = Recurrent(text, tuple({"b": 1, "t": 8, "s": 8, "h": 2, "d": 4, "e": 4}.items()))
    tensors = {n: torch.from_numpy(array) for n, array in case.inputs().items()}
    (make,) = libraries(case, tensors).values()
    make()()
    assert taken["options"]["scale"] == 1.0
    if "l" in tensors:
        *_, falls = taken["given"]
        torch.testing.assert_close(falls.cumsum(1), tensors["l"] - tensors["l"][:, :1])


def test_other_operators_have_no_such_kernels():
    assert libraries(small("softmax"), {}) == {}
