"""The source distribution has what somebody needs who builds, tests or reads it elsewhere."""

from __future__ import annotations

import subprocess
import sys
import tarfile

from tests.pages import ROOT

LEFT_OUT = {".git", ".venv", "build", "dist"}
WANTED = {
    ".ci/run",
    ".github/workflows/ci.yml",
    "AGENTS.md",
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "SECURITY.md",
    "changelog.d/README.md",
    "constraints.txt",
    "docs/conf.py",
    "docs/index.md",
    "examples/first_kernel.ipynb",
    "examples/own_template.py",
    "experiments/replay/README.md",
    "tests/pages.py",
    "tests/release/test_sdist.py",
}
BUILD = "from setuptools import build_meta; build_meta.build_sdist('made')"


def test_a_source_distribution_has_documents_examples_and_tests(tmp_path):
    for path in ROOT.iterdir():
        if path.name not in LEFT_OUT and path.suffix != ".egg-info":
            (tmp_path / path.name).symlink_to(path)
    command = [sys.executable, "-c", BUILD]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    [made] = (tmp_path / "made").glob("tilewright-*.tar.gz")
    with tarfile.open(made) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names >= WANTED
    assert not [name for name in names if name.endswith((".pyc", ".db"))]
    assert not any("/_build/" in name for name in names)
