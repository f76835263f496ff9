"""Pack everything that a host without a package registry needs into one folder."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tilewright.spaces.errors import InputError, shown

ROOT = Path(__file__).parents[1]
PACKAGES = ("spaces", "measure", "costmodel", "scheduler", "tilewright", "experiments")
CONSTRAINTS = "constraints.txt"
WHEELS = (
    "alembic",
    "cuda-bindings",
    "cuda-core",
    "cuda-pathfinder",
    "mako",
    "platformdirs",
    "sqlalchemy",
    "xgboost-cpu",
)
"""Packages that a usual image with torch, Triton and NumPy lacks."""

PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")
MIB = 2**20

RUN = """\
#!/bin/sh
# Runs a command with the packages of this folder: ./run.sh python3 -m experiments.gpu_matmul
set -e
here=$(cd "$(dirname "$0")" && pwd)
if [ ! -d "$here/site" ] && ls "$here"/wheels/*.whl >/dev/null 2>&1; then
  python3 -m pip install --quiet --no-index --no-deps --no-compile --no-cache-dir \\
    --target "$here/site.new" "$here"/wheels/*.whl
  mv "$here/site.new" "$here/site"
fi
export PYTHONPATH="$here/site:$here/source:$here/source/scheduler/face${PYTHONPATH:+:$PYTHONPATH}"
cd "$here"
exec "$@"
"""


def make_bundle(
    out: Path,
    limit_mib: float = 64.0,
    python: str = "3.12",
    machine: str = "x86_64",
    wheels: Sequence[str] = WHEELS,
) -> dict[str, int]:
    """Write ``out`` with ``source/``, ``wheels/`` and ``run.sh``; return the bytes of each part.

    Versions are those of ``constraints.txt`` if it names one. Raises :class:`InputError` if ``out``
    exists, a wheel cannot be had, or all is larger than ``limit_mib``.
    """
    _check(python, machine, wheels)
    if out.exists():
        raise InputError(f"{out} exists already; a bundle is a new folder")
    with _folder_beside(out) as folder:
        made = folder / "bundle"
        (made / "wheels").mkdir(parents=True)
        _copy_sources(made / "source")
        _download(wheels, made / "wheels", python, machine)
        script = made / "run.sh"
        script.write_text(RUN)
        script.chmod(0o755)
        sizes = _sizes(made)
        total = sum(sizes.values())
        if total > limit_mib * MIB:
            largest = sorted(sizes, key=lambda name: -sizes[name])[:3]
            words = ", ".join(f"{name} {sizes[name] / MIB:.1f}" for name in largest)
            raise InputError(
                f"the bundle takes {total / MIB:.1f} MiB, allowed: {limit_mib:g}; "
                f"the largest parts: {words}"
            )
        made.rename(out)
    return sizes


def _check(python: str, machine: str, wheels: Sequence[str]) -> None:
    """Only what looks like a version, a machine or a project reaches pip's command line."""
    for name, pattern, values, allowed in (
        ("--python", r"\d+(\.\d+){0,2}", [python], "versions such as 3.12"),
        ("--machine", r"\w+", [machine], "names such as x86_64"),
        ("--wheel", r"\w[\w.-]*(\[[\w,.-]+\])?(==[\w.!+*-]+)?", wheels, "names such as numpy==2.4"),
    ):
        for value in values:
            if not re.fullmatch(pattern, value, re.ASCII):
                raise InputError(f"{name}={shown(value)} is not allowed; allowed: {allowed}")


@contextmanager
def _folder_beside(out: Path) -> Iterator[Path]:
    """Make a temporary folder on the file system of ``out``; :class:`InputError` if none can be."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        temporary = tempfile.TemporaryDirectory(dir=out.parent)
    except OSError as error:
        reason = error.strerror
        raise InputError(f"cannot make folder {shown(str(out))}: {reason}") from None
    with temporary as folder:
        yield Path(folder)


def requirements(wheels: Sequence[str], pins: Mapping[str, str]) -> list[str]:
    """Return ``wheels`` with the pinned versions."""
    return [f"{name}=={pins[name]}" if name in pins else name for name in wheels]


def read_pins(path: Path) -> dict[str, str]:
    """Normalised project name to version, of a file of constraints; empty if there is none."""
    lines = path.read_text().splitlines() if path.exists() else []
    pins = (line.partition("==") for line in lines if "==" in line and line[0] != "#")
    return {re.sub(r"[-_.]+", "-", name.strip()).lower(): v.strip() for name, _, v in pins}


def _copy_sources(to: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc", "*.db*", "results")
    for package in PACKAGES:
        if (ROOT / package).is_dir():
            shutil.copytree(ROOT / package, to / package, ignore=ignored)


def _download(wheels: Sequence[str], to: Path, python: str, machine: str) -> None:
    if not wheels:
        return
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary=:all:", "--implementation", "cp"]
    command += ["--python-version", python, "--dest", str(to)]
    for platform in PLATFORMS:
        command += ["--platform", f"{platform}_{machine}"]
    command += requirements(wheels, read_pins(ROOT / CONSTRAINTS))
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "ERROR" in line] or ["pip failed"]
        raise InputError(f"wheels for Python {python} cannot be had: {lines[-1]}")


def _sizes(folder: Path) -> dict[str, int]:
    """Return the bytes of the sources together, and of each wheel."""
    sizes = {path.name: path.stat().st_size for path in (folder / "wheels").iterdir()}
    sources = (path for path in (folder / "source").rglob("*") if path.is_file())
    return {"source": sum(path.stat().st_size for path in sources), **sizes}
