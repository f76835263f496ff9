"""How much memory there is: cgroups of both versions, and none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tilewright.measure.memory import memory_limit

PHYSICAL = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
GIB = 1 << 30


def limit(root: Path, own: str, files: dict[str, str]) -> int:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "self").write_text(own)
    return memory_limit(root, root / "self")


@pytest.mark.parametrize(
    ("own", "files"),
    [
        ("0::/\n", {"memory.max": f"{GIB}\n"}),
        ("0::/a/b\n", {"a/b/memory.max": f"{GIB}\n", "a/memory.max": f"{2 * GIB}\n"}),
        ("0::/a/b\n", {"a/b/memory.max": "max\n", "a/memory.max": f"{GIB}\n"}),
        ("0::/host/path\n", {"memory.max": f"{GIB}\n"}),
        ("5:cpu:/\n4:memory:/a\n0::/\n", {"memory/a/memory.limit_in_bytes": f"{GIB}\n"}),
        ("4:cpu,memory:/host\n", {"memory/memory.limit_in_bytes": f"{GIB}\n"}),
        ("1:name=systemd:/\n0::/x\n", {"unified/x/memory.max": f"{GIB}\n"}),
    ],
)
def test_the_least_limit_of_a_container_counts(
    tmp_path: Path, own: str, files: dict[str, str]
) -> None:
    assert limit(tmp_path, own, files) == min(GIB, PHYSICAL)


@pytest.mark.parametrize(
    ("own", "files"),
    [
        ("0::/\n", {}),
        ("0::/\n", {"memory.max": "max\n"}),
        ("4:memory:/\n", {"memory/memory.limit_in_bytes": "9223372036854771712\n"}),
    ],
)
def test_without_a_limit_it_is_the_machines(
    tmp_path: Path, own: str, files: dict[str, str]
) -> None:
    assert limit(tmp_path, own, files) == PHYSICAL


def test_without_control_groups_it_is_the_machines(tmp_path: Path) -> None:
    assert memory_limit(tmp_path, tmp_path / "none") == PHYSICAL
