"""The comparison of packed weights, on a product that takes no time."""

import json

from experiments.packed_weights import joined
from experiments.packed_weights.__main__ import main


def test_a_comparison_writes_its_results(tmp_path, capsys):
    out = tmp_path / "results.json"
    given = ["--shapes", "2x20x16", "--seconds", "0", "--rounds", "4", "--out", str(out)]
    main([*given, "--db", str(tmp_path / "none.db")])
    made = json.loads(out.read_text())["shapes"]["2x20x16"]
    assert made["seconds"].keys() == {"col", "row", "packed"}
    assert made["schedule"].startswith("thin_packed")
    assert "2x20x16" in capsys.readouterr().out


def test_joined_weights_are_compared_with_weights_apart(tmp_path, capsys):
    out = tmp_path / "joined.json"
    given = ["--shapes", "2x32x16", "--seconds", "0", "--rounds", "4", "--out", str(out)]
    joined.main([*given, "--db", str(tmp_path / "none.db")])
    made = json.loads(out.read_text())["shapes"]
    assert made.keys() == {"projections 2x32x16", "gated 2x32x16"}
    assert all(each["seconds"].keys() == {"apart", "joined"} for each in made.values())
    assert "gated 2x32x16" in capsys.readouterr().out
