"""Models as operators: what they are is what was published, and torch computes the same."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest

from experiments.models.__main__ import main, measuring, operators_of, run
from experiments.models.choosing import build, chosen, transferred
from experiments.models.images import Convolution, Means, Pooling
from experiments.models.known import Known, known_of
from experiments.models.networks import MODELS, TRANSFORMERS, distinct
from experiments.models.products import EPILOGUES, Product, named
from experiments.models.summary import summarise, table
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import detect_target

BERT_EMBEDDINGS, GPT_POSITIONS = (30_522 + 512 + 2) * 768, 1024 * 768
PARAMETERS = {
    "resnet-50": 25_557_032,
    "inception-v3": 27_161_264 - 3_326_696,  # without the auxiliary classifier
    "mobilenet-v2": 3_504_872,
    "bert-base": 109_482_240 - BERT_EMBEDDINGS,
    "gpt-2": 124_439_808 - GPT_POSITIONS,
}
"""As published with the models' weights; what looks up tokens and positions is left out."""
MULTIPLICATIONS = {
    "resnet-50": 4_089_184_256,
    "inception-v3": 5_713_216_096,
    "mobilenet-v2": 300_774_272,
    "bert-base": 128 * 12 * 12 * 768**2 + 768**2 + 2 * 12 * 128 * 128 * 768,
    "gpt-2": 128 * 12 * 12 * 768**2 + 768 * 50_257 + 2 * 12 * 128 * 128 * 768,
}
"""Of an image, as torchvision publishes them, and of 128 tokens: one for each weight and token, and
one for each pair of tokens and element of a head, twice."""


def flops(operators):
    """Of convolutions, products and attention."""
    counted = ((o, n) for o, n in operators.items() if not o.name.startswith("layernorm"))
    return sum(n * o.workload.flops for o, n in counted)


@pytest.mark.parametrize("model", MODELS)
def test_models_have_as_many_parameters_and_multiply_as_often_as_published(model):
    once, eight = (distinct(model, batch, "float32") for batch in (1, 8))
    assert sum(count * o.weights for o, count in once.items()) == PARAMETERS[model]
    assert [flops(once), flops(eight)] == [2 * MULTIPLICATIONS[model], 16 * MULTIPLICATIONS[model]]
    assert len({operator.name for operator in once}) == len(once)


@pytest.mark.parametrize(("model", "hidden"), [("bert-base", 0), ("gpt-2", 128 * 127 // 2)])
def test_attention_as_one_operator_multiplies_what_no_mask_hides(model, hidden):
    found = distinct(model, 1, "float32", whole=True)
    assert flops(found) == 2 * (MULTIPLICATIONS[model] - 2 * 12 * 768 * hidden)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cpu", "cuda:sm_90a"])
@pytest.mark.parametrize("model", MODELS)
def test_every_operator_of_a_model_is_served(model, kind):
    target = detect_target(kind)
    for operator in operators_of(model, 8, target):
        assert space_for(operator.workload, target).templates


@pytest.mark.parametrize("kind", ["cpu", "cuda:sm_90a"])
@pytest.mark.parametrize("model", TRANSFORMERS)
def test_every_operator_of_a_transformer_is_served(model, kind):
    target = detect_target(kind)
    for operator in operators_of(model, 1, target):
        assert space_for(operator.workload, target).templates


def conv(*sizes: int, **changes: object) -> Convolution:
    """A small convolution of two images."""
    channels, size, outputs, height, width, stride = sizes
    words = {"activation": "relu", "dtype": "float32", **changes}
    return Convolution(
        2, channels, size, outputs, (height, width), stride, (height // 2, width // 2), **words
    )


OPERATORS = (
    conv(4, 7, 6, 3, 3, 2),
    conv(4, 7, 6, 1, 1, 1, residual=True, activation=""),
    conv(4, 6, 5, 1, 1, 2, activation=""),
    conv(3, 9, 5, 1, 7, 1, activation="relu6"),
    conv(3, 9, 5, 7, 1, 1, residual=True),
    conv(6, 8, 6, 3, 3, 2, groups=6, activation="relu6"),
    Pooling(2, 3, 9, 3, 2, 1, "max", "float32"),
    Pooling(2, 3, 9, 3, 2, 0, "max", "float32"),
    Pooling(2, 3, 9, 3, 1, 1, "avg", "float32"),
    Means(2, 5, 3, "float32"),
    *(Product(3, 4, 5, follows, "float32", "col") for follows in EPILOGUES),
    Product(3, 4, 5, "scale", "float32", "col", 6),
    named("attention", b=1, h=2, i=4, j=4, d=8, mask="causal", dtype="float32"),
    named("layernorm", r=3, c=8, dtype="float32"),
)


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_what_torch_computes_is_what_an_operator_says(operator):
    import torch

    work = operator.workload
    inputs = {name: 3 * array for name, array in work.make_inputs(seed=1).items()}
    wide = {name: torch.from_numpy(array.astype(np.float64)) for name, array in inputs.items()}
    single = work.matmul
    exact = work.matmul.reference(inputs) if single else evaluate(work.program, inputs)["y"]
    for rival in operator.rivals.values():
        np.testing.assert_allclose(rival(**wide).numpy(), exact, atol=1e-5)
    for turned in operator.others(wide).values():
        found = turned().permute(0, 2, 3, 1).reshape(exact.shape)
        np.testing.assert_allclose(found.numpy(), exact, atol=1e-6)
    alone = operator.alone(wide)
    assert alone is None or alone().numel() == exact.size


ROWS = {
    "a": {"count": 3, "median_s": {"tilewright": 2.0, "eager": 3.0, "compiled": 1.0, "alone": 0.1}},
    "b": {"count": 1, "median_s": {"tilewright": 1.0, "eager": 4.0, "sdpa": 2.0, "copy": 0.1}},
    "c": {"count": 9, "median_s": {"eager": 4.0}},
}


def test_operators_count_as_often_as_they_occur_and_losses_are_named():
    found = summarise(ROWS)
    assert found["seconds"] == {"tilewright": 7.0, "eager": 13.0, "compiled": 7.0, "fastest": 5.0}
    assert found["ratios"] == {"eager": 13 / 7, "compiled": 1.0, "fastest": 5 / 7}
    assert (found["operators"], found["losses"], found["untimed"]) == (2, {"a": 0.5}, ["c"])


def test_tables_have_each_model_and_each_operator():
    entry = {"operators": ROWS, "distinct": 4, "summary": summarise(ROWS)}
    text = table({"date": "2026-01-01", "command": "x", "models": {"net, batch 1": entry}})
    assert "| net, batch 1 | 2 of 4 | 7000000.0 | 13000000.0 |" in text
    assert "| a | 3 | 2000000.0 | 3000000.0 | 1000000.0 | 100000.0 | - | 0.50 |" in text


def test_a_further_call_goes_on_with_what_is_missing(tmp_path):
    wanted, asked = {"net, batch 1": distinct("bert-base", 1, "float32")}, []

    def measure(operators, end):
        asked.append([operator.name for operator in operators])
        for operator in [*operators][:4]:
            yield operator, {"median_s": {"tilewright": 1.0, "eager": 2.0}}

    results = {"models": {}, "date": "2026-01-01", "command": "x"}
    for _ in range(4):
        run(wanted, results, measure, time.monotonic() + 1e6, tmp_path / "x.json")
    assert [len(names) for names in asked] == [9, 5, 1]
    assert sorted({*asked[0][:4], *asked[1][:4], *asked[2]}) == sorted(asked[0])
    assert results["models"]["net, batch 1"]["summary"]["operators"] == 9


def test_operators_of_several_models_are_measured_once_where_all_are_measured_together(tmp_path):
    bert, gpt = distinct("bert-base", 1, "float32"), distinct("gpt-2", 1, "float32")
    asked = []

    def measure(operators, end):
        for operator, count in operators.items():
            asked.append((operator.name, count))
            yield operator, {"median_s": {"tilewright": 1.0, "eager": 2.0}}

    results = {"models": {}, "date": "2026-01-01", "command": "x"}
    wanted = {"bert": bert, "gpt": gpt}
    end = time.monotonic() + 9
    run(wanted, results, measure, end, tmp_path / "x.json", together=True)
    both = {o.name for o in bert} & {o.name for o in gpt}
    assert len(asked) == len({*bert, *gpt}) == len(bert) + len(gpt) - len(both)
    assert dict(asked)["layernorm 128x768 float32"] == 50
    for model, operators in wanted.items():
        rows = results["models"][model]["operators"]
        assert {name: row["count"] for name, row in rows.items()} == {
            o.name: n for o, n in operators.items()
        }


def test_a_part_of_the_operators_is_chosen_by_their_names(tmp_path):
    wanted, asked = {"net, batch 1": distinct("bert-base", 1, "float32")}, []

    def measure(operators, end):
        for operator in operators:
            asked.append(operator.name)
            yield operator, {"median_s": {"tilewright": 1.0, "eager": 2.0}}

    results = {"models": {}, "date": "2026-01-01", "command": "x"}
    run(wanted, results, measure, time.monotonic() + 9, tmp_path / "x.json", re.compile("gelu"))
    assert asked == ["128x3072x768 col, gelu"]
    assert results["models"]["net, batch 1"]["distinct"] == 9


def test_choices_are_the_same_wherever_they_are_made_and_can_be_built():
    target, work = detect_target("cuda:sm_90a"), Means(1, 8, 4, "float16").workload
    first, again = (chosen(work, target, (), 6, seed=1) for _ in range(2))
    assert first == again
    assert len(set(first)) == 6
    assert set(chosen(work, target, first[:2], 4, seed=2)) <= set(
        map(space_for(work, target).schedule, space_for(work, target).neighbours(
            space_for(work, target).rows(first[:2]), np.random.default_rng(2)))
    )  # fmt: skip
    known = Known({"x": first[3:]})
    assert [
        b.candidate.schedule for b in build(work, target, (), 3, seed=1, known=known, name="x")
    ] == [
        *first[3:5],
        first[0],
    ]
    (built,) = build(work, target, (), 1, seed=1)
    assert built.candidate.schedule == first[0]
    assert isinstance(built.binary, bytes), built.error_text


def test_what_is_known_of_an_operator_comes_before_what_is_known_of_others(tmp_path):
    target, work = detect_target("cuda:sm_90a"), Means(8, 8, 4, "float16").workload
    foreign = chosen(conv(8, 14, 8, 3, 3, 1).workload, target, (), 2, seed=1)
    first = chosen(work, target, (), 6, seed=1)
    explored = [{"us": 1.0, "schedule": s.to_json()} for s in first]
    models = {"net, batch 1": {"operators": {"own": {"explored": explored[:2]}}}}
    others = {"cases": {"other": {"explored": explored[1:4]}, "none": {}}}
    others["cases"]["foreign"] = {"explored": [{"schedule": s.to_json()} for s in foreign]}
    for name, results in (("models", {"models": models}), ("others", others)):
        (tmp_path / name).write_text(json.dumps(results))
    known = known_of([tmp_path / "models", tmp_path / "others"])
    assert transferred(work, target, known, "own", 12) == first[:3]
    assert transferred(work, target, known, "own", 1) == first[:1]
    assert set(transferred(work, target, known, "new", 12)) == set(first[:3])
    assert transferred(work, target, Known(), "own", 12) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--prepare"], "models: nothing is prepared for cpu; allowed: cuda"),
        (["--batch", "0"], "models: batch=0 is out of range; allowed: whole numbers from 1"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(monkeypatch, capsys, words, says):
    monkeypatch.setattr("sys.argv", ["models", "--target", "cpu", *words])
    assert main() == 2
    assert capsys.readouterr().err == says + "\n"


class Counted:
    """What a search asks of an operator: how often it asked."""

    def __init__(self) -> None:
        self.turns, self.told = 0, 0

    def ask(self, process_pool):
        self.turns += 1
        return process_pool.submit(lambda: ())

    def tell(self, found):
        self.told += 1


def test_each_operator_is_searched_once_even_if_there_is_no_time():
    from experiments.models.gpu import search

    contests = [Counted() for _ in range(3)]
    with ThreadPoolExecutor(1) as process_pool:
        search(contests, process_pool, time.monotonic())
    assert [(c.turns, c.told) for c in contests] == [(1, 1)] * 3


def test_names_tell_operators_apart_at_every_batch():
    for model, batch in product(MODELS, (1, 8)):
        found = distinct(model, batch, "float16")
        assert len({o.workload.key for o in found}) == len(found), model


@pytest.mark.slow
def test_operators_are_tuned_and_timed_on_a_cpu(tmp_path):
    wanted = {"tiny, batch 1": Counter({Means(1, 64, 8, "float32"): 2, conv(8, 14, 8, 3, 3, 1): 1})}
    results = {"models": {}, "date": "2026-01-01", "command": "x"}
    with measuring(detect_target("cpu"), 1, Known()) as measure:
        while len(results["models"].get("tiny, batch 1", {}).get("operators", ())) < 2:
            run(wanted, results, measure, time.monotonic() + 20, tmp_path / "x.json")
    found = results["models"]["tiny, batch 1"]
    assert found["summary"]["operators"] == 2
    for row in found["operators"].values():
        assert {"tilewright", "eager", "eager NCHW"} - set(row["median_s"]) <= {"eager NCHW"}
        assert row["largest_error"] < 1e-5
