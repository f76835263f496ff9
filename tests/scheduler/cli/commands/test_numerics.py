"""``--numerics``: what is allowed, and what is said of it."""

from __future__ import annotations

import json

from tests.scheduler.cli.command import ask, one_line
from tilewright.scheduler.cli.app import run

SIZES = ("n=1", "c=32", "h=20", "w=20", "o=32", "r=3", "s=3", "padding=1")
CONVOLUTION = ("conv2d", *SIZES, "layout=NHWC")


def test_show_says_which_templates_need_fast(capsys):
    shown = ask(capsys, "show", *CONVOLUTION)
    assert "  winograd: serves it with numerics=fast\n" in shown
    assert "  windows: serves it\n" in shown


def test_tune_and_query_keep_to_what_is_allowed(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ask(capsys, "tune", *CONVOLUTION, "--trials", "12", "--numerics", "fast", "-q")
    schedules = json.loads(ask(capsys, "query", *CONVOLUTION, "--format", "json"))
    assert schedules["numerics"] == "strict"
    assert schedules["schedule"]["template"] != "winograd"
    assert "numerics strict" in " ".join(ask(capsys, "query", *CONVOLUTION).split())


def test_an_unknown_mode_is_refused(capsys):
    assert run(["tune", *CONVOLUTION, "--numerics", "exact"]) == 2
    said = one_line(capsys.readouterr().err)
    assert "'exact'" in said
    assert "strict" in said
