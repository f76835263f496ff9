"""A batch of products from tuning to calling, under each of its names."""

from __future__ import annotations

import json

import numpy as np

from tests.scheduler.cli.command import TRIALS, ask, finished
from tilewright.measure.database import Database
from tilewright.scheduler.best import best
from tilewright.spaces.operators import workload
from tilewright.spaces.target import target_from_json

WORDS = ("bmm", "batch=6", "m=24", "n=32", "k=16", "shared=2", "epilogue=x + bias[n]")
SAME = ("matmul", "batch=3", "m=48", "n=32", "k=16", "epilogue=x + bias[n]")
SPELT = (
    "y[b,h,i,j] = sum[k](q[b,h,i,k] * w[b,k,j]) + bias[j]",
    *("b=3", "h=2", "i=24", "j=32", "k=16"),
)


def test_a_batch_is_tuned_asked_for_called_and_carried_over(here, capsys):
    budget = ("--trials", str(TRIALS), "--seconds", "100")
    code, _, err = finished("tune", *WORDS, *budget, "--db", "tuning.db", cwd=here)
    assert code == 0, err
    question = ("--format", "json", "--db")
    answers = [json.loads(ask(capsys, "query", *w, *question, "tuning.db")) for w in (WORDS, SAME)]
    answers.append(json.loads(ask(capsys, "query", *SPELT, *question, "tuning.db")))
    assert answers[0]["provenance"] == "measured"
    assert (
        answers[0]["workload"]
        == workload("matmul", batch=3, m=48, n=32, k=16, epilogue="x + bias[n]").to_json()
    )
    names = ("workload", "schedule", "latency_s")
    assert len({json.dumps([answer[name] for name in names]) for answer in answers}) == 1
    ask(capsys, "export", "--db", "tuning.db", "log.jsonl")
    ask(capsys, "import", "log.jsonl", "--db", "other.db")
    assert json.loads(ask(capsys, "query", *WORDS, *question, "other.db")) == answers[0]
    check_function(answers[0])


def check_function(answer) -> None:
    made = workload("bmm", batch=6, m=24, n=32, k=16, shared=2, epilogue="x + bias[n]")
    inputs = made.make_inputs(0)
    with Database("tuning.db", create=False) as database:
        function = best(made, target_from_json(answer["target"]), database)
    assert function.provenance == "measured"
    found = function(inputs["A"].reshape(6, 24, 16), inputs["B"], inputs["bias"])
    exact = made.matmul.reference(inputs).reshape(6, 24, 32)  # which has what shares a B as rows
    np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-5)


def test_show_says_who_serves_a_batch(capsys):
    said = ask(capsys, "show", *WORDS, "--target", "cpu")
    assert "batch" in said
    (line,) = (line for line in said.splitlines() if "contraction" in line)
    assert "serves" in line, said
