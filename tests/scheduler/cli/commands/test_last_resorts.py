"""What is said where no fast template serves a program."""

from __future__ import annotations

import json

import pytest

from tests.scheduler.cli.command import run

GREATEST = ("where k <= 2 * j; y[i,j] = max[k](x[i,k])", "i=4", "j=9", "k=9")
MEAN_FIRST = (
    "m[b,j] = mean[i](x[b,j,i]); y[b] = prod[j](m[b,j] + m[b,j // 2])",
    "b=3",
    "j=5",
    "i=9",
)


@pytest.mark.parametrize(
    ("words", "template", "says"),
    [
        (GREATEST, "loops", "no fast template serves this program"),
        (MEAN_FIRST, "staged_loops", "several kernels compute it"),
    ],
)
def test_query_says_that_the_kernel_is_plain(capsys, words, template, says):
    assert run(["query", *words, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schedule"]["template"] == template
    assert says in found["note"]
    assert run(["query", *words]) == 0
    assert says in capsys.readouterr().out


def test_nothing_is_said_of_fast_kernels(capsys):
    assert run(["query", "softmax", "r=8", "c=8", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["note"] == ""
    assert run(["query", "softmax", "r=8", "c=8"]) == 0
    assert "note" not in capsys.readouterr().out


def test_tune_finds_a_plain_kernel_and_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["tune", *GREATEST, "--trials", "2", "--seconds", "60"]) == 0
    said = capsys.readouterr().out
    assert "loops: workers=1" in said
    assert "no fast template serves this program" in said


def test_show_says_which_templates_would_not(capsys):
    assert run(["show", *GREATEST]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "loops: serves it" in lines
    assert run(["show", "softmax", "r=8", "c=8"]) == 0
    assert "loops: another template serves it" in capsys.readouterr().out


@pytest.mark.parametrize(("bound", "template"), [("k <= j", "scan"), ("k <= 2 * j", "rows")])
def test_a_sum_that_conditions_bound_has_a_fast_kernel(
    tmp_path, monkeypatch, capsys, bound, template
):
    monkeypatch.chdir(tmp_path)
    bounded = (f"where {bound}; y[i,j] = sum[k](x[i,k])", "i=4", "j=9", "k=9")
    assert run(["show", *bounded]) == 0
    served = f"{template}: serves it"
    assert served in [each.strip() for each in capsys.readouterr().out.splitlines()]
    assert run(["tune", *bounded, "--trials", "2", "--seconds", "60"]) == 0
    assert f"{template}: " in capsys.readouterr().out
