"""Bundles: what is in them, what they refuse, and that they run where nothing is installed."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tilewright.scheduler import bundle
from tilewright.scheduler.bundle import make_bundle, read_pins, requirements
from tilewright.scheduler.cli.app import run
from tilewright.spaces.errors import InputError


def tiny_wheel(folder: Path) -> None:
    """A wheel (PEP 427) of one module."""
    with zipfile.ZipFile(folder / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "VALUE = 42\n")
        about = "tiny-1.0.dist-info"
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        tag = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        wheel.writestr(f"{about}/WHEEL", tag)
        wheel.writestr(f"{about}/RECORD", "")


def test_a_bundle_runs_with_its_sources_and_wheels(tmp_path, monkeypatch):
    out = tmp_path / "bundle"
    monkeypatch.setattr(bundle, "_download", lambda names, to, *_: tiny_wheel(to))
    sizes = make_bundle(out)
    assert set(sizes) == {"source", "tiny-1.0-py3-none-any.whl"}
    assert not list(out.rglob("__pycache__"))
    assert (out / "source/measure/cuda/emulator/native/main.cpp").exists()
    assert (out / "source/spaces/cuda/intrinsics/device.cuh").exists()
    assert (out / "source/scheduler/functions/launcher.c").exists()
    script = "import scheduler, tilewright, tiny; print(scheduler.__file__, tiny.VALUE)"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {name: v for name, v in os.environ.items() if name != "PYTHONPATH"}
    for _ in range(2):  # the second time, all is there
        done = subprocess.run(
            [out / "run.sh", "python3", "-c", script],
            env=environment | {"PATH": path},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == [str(out / "source/scheduler/__init__.py"), "42"]


def test_what_is_too_large_or_there_already_is_refused(tmp_path, capsys):
    out = tmp_path / "bundle"
    with pytest.raises(InputError, match=r"allowed: 0\.1; the largest parts: source"):
        make_bundle(out, limit_mib=0.1, wheels=())
    assert list(tmp_path.iterdir()) == []
    out.mkdir()
    assert run(["bundle", str(out)]) == 2
    assert "exists already" in capsys.readouterr().err


def test_versions_are_the_pinned_ones(tmp_path):
    path = tmp_path / "constraints.txt"
    path.write_text("# a comment==1\nSQLAlchemy==2.1\nml_dtypes==0.6\nxgboost-cpu==3.2\n")
    pins = read_pins(path)
    assert pins == {"sqlalchemy": "2.1", "ml-dtypes": "0.6", "xgboost-cpu": "3.2"}
    named = requirements(["sqlalchemy", "xgboost-cpu", "mako", "tiny==7"], pins)
    assert named == ["sqlalchemy==2.1", "xgboost-cpu==3.2", "mako", "tiny==7"]
    assert read_pins(tmp_path / "none") == {}
