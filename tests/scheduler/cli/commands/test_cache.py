"""What is kept of kernels and helpers, shown and removed."""

from __future__ import annotations

import json

from tilewright.measure.host.cache import KINDS, CachedFile
from tilewright.scheduler.cli.app import run


def test_the_cache_is_shown_and_cleared(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    CachedFile("binaries", "kernel-1").write(b"x" * 3_000_000)
    assert run(("cache",)) == 0
    text = capsys.readouterr().out
    assert str(tmp_path / "tilewright" / "binaries") in text
    [line] = [line for line in text.splitlines() if line.startswith("all")]
    assert line.split()[2:] == ["1", "2.9", "MiB"]
    assert run(("cache", "--clear", "--format", "json")) == 0
    kinds = json.loads(capsys.readouterr().out)
    assert [each["kind"] for each in kinds] == list(KINDS)
    assert {each["files"] for each in kinds} == {each["bytes"] for each in kinds} == {0}
