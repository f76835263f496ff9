"""The comparison of gradients, on operators that take no time."""

import json

from experiments.gradients.__main__ import main


def test_a_comparison_writes_its_results(tmp_path, capsys):
    out = tmp_path / "results.json"
    names = ["softmax", "product, gelu", "attention, causal"]
    main(["--only", *names, "--seconds", "0", "--rounds", "3", "--small", "--out", str(out)])
    made = json.loads(out.read_text())["cases"]
    assert [*made] == names
    assert all(case["seconds"].keys() == {"own", "torch"} for case in made.values())
    assert "softmax" in capsys.readouterr().out
