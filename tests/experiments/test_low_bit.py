"""The comparison of weights of few bits, on a product that takes no time."""

import json

from experiments.low_bit.__main__ import main


def test_a_comparison_writes_its_results(tmp_path, capsys):
    out = tmp_path / "results.json"
    given = ["--shape", "1x64x128", "--dtypes", "uint3", "--seconds", "0", "--rounds", "3"]
    main([*given, "--out", str(out), "--db", str(tmp_path / "none.db")])
    made = json.loads(out.read_text())
    assert {"uint3", "float32", "torch float32"} <= set(made["times"])
    assert "uint3" in capsys.readouterr().out
